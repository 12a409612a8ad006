import type { IncomingMessage } from 'node:http';
import { LIGHT_COMMAND_BYTES } from '@app/amqp/messages/command-format';
import { HTTP_MESSAGES } from '@app/contracts/all-messages';

/** Kind of a call: service and queue. If a queue is stuck, all calls of its kind are. */
export type Kind = `${'users' | 'notifications'}.${'commands' | 'queries'}`;

const MESSAGES = new Map<string | undefined, (typeof HTTP_MESSAGES)[number]>(
  HTTP_MESSAGES.map((message) => [message.http.path, message]),
);

/** The message that is sent for a route. */
export const messageOf = (path?: string) => MESSAGES.get(path);

const KIND_OF_PATH = new Map<string, Kind>(
  HTTP_MESSAGES.map(({ http, service, kind }) => [http.path, `${service}.${kind === 'command' ? 'commands' : 'queries'}`]),
);

export const KINDS: readonly Kind[] = [...new Set(KIND_OF_PATH.values())];

/** Whether the calls of a route are heavy commands, whatever the size of their bodies. */
export const changesRows = (path?: string): boolean => messageOf(path)?.changesRows === true;

/** Bytes that the body of a command counts for, as consumers count it: more where few bytes are much work. 0: the command is light. */
export function heavyBytesOf(path: string, bytes: number): number {
  const lightBytes = messageOf(path)?.lightBytes ?? LIGHT_COMMAND_BYTES;
  return bytes < lightBytes ? 0 : bytes * (LIGHT_COMMAND_BYTES / lightBytes);
}

export const isQuery = (kind: Kind): boolean => kind.endsWith('queries');

/** The kind of a call to this URL; undefined for other paths. */
export function kindOf(url = ''): Kind | undefined {
  const known = KIND_OF_PATH.get(url);
  if (known) return known;
  const query = url.indexOf('?');
  return query < 0 ? undefined : KIND_OF_PATH.get(url.slice(0, query));
}

const HEALTH_CHECKS: ReadonlySet<string> = new Set(['/health/live', '/health/ready']);

/** Whether it is a health check of a load balancer. */
export const isHealth = ({ url = '' }: IncomingMessage): boolean => HEALTH_CHECKS.has(url.split('?', 1)[0]);
