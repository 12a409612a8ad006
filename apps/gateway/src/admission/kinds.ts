import { HTTP_MESSAGES } from '@app/contracts/all-messages';

/** Calls that hang together, when they do: those that wait in one queue. */
export type Kind = `${'users' | 'notifications'}.${'commands' | 'queries'}`;

const KIND_OF_PATH = new Map<string, Kind>(
  HTTP_MESSAGES.map(({ http, service, kind }) => [http.path, `${service}.${kind === 'command' ? 'commands' : 'queries'}`]),
);

export const KINDS: readonly Kind[] = [...new Set(KIND_OF_PATH.values())];

/** The kind of call that goes to a URL, if any. */
export function kindOf(url = ''): Kind | undefined {
  const known = KIND_OF_PATH.get(url);
  if (known) return known;
  const query = url.indexOf('?');
  return query < 0 ? undefined : KIND_OF_PATH.get(url.slice(0, query));
}
