import { identifierProblem, LIMITS, textProblem } from '@app/contracts/fields';
import { readArguments, UsageError, wholeNumber, type ValuesOf } from '@app/runtime/command-line';
import { milliseconds } from '@app/runtime/settings/duration';
import type { Output } from '@app/runtime/tool-output';
import { newApiKey, newToken } from '@app/api-keys/credentials';
import { ANYBODY, type ApiKeysRepository, type ListedKey } from '@app/api-keys/api-keys.repository';

/** The command cannot be executed: exit code 1. */
export class KeyError extends Error {}

export const HELP = `Manages API keys and their tokens.

Usage: npm run keys -- COMMAND [options]

  create [--name NAME] [--expires-in TIME]   a new API key with its first token
  list [TEXT] [--limit N]                    keys with TEXT in the key or the name, oldest first, with their state and their live
                                             tokens; at most N (default 1000)
  issue-token KEY [--expires-in TIME]        one more token
  rotate KEY [--grace TIME] [--expires-in TIME]
                                             a new token; earlier tokens expire after the grace (default 24h)
  disable KEY                                calls with the key are answered with 403
  enable KEY                                 enables a disabled key
  revoke KEY | --token ID                    revokes all tokens of a key, or one; broker accounts go on with the key
  grant KEY --publisher ACCOUNT              lets a broker account publish for the key, without HTTP
  withdraw KEY --publisher ACCOUNT           withdraws such a grant

Options:
  --json   the result as one JSON object
  --help   this text

ACCOUNT is the broker account, which the publisher puts into user_id. '*' stands for every account that may connect to the broker. TIME is a
number with s, m, h or d: 90d. A token is shown once and stored only as a hash. Every change takes effect in all gateways within 5 seconds, a
revocation at once, or after AUTH_STALE_MAX while the users service is away. The database is the one of USERS_DATABASE_URL or DATABASE_URL, else that of a running "npm start".
Exit codes: 0 done, 1 it cannot be done, 2 wrong usage.

Examples:
  npm run keys -- create --name "Billing service"
  npm run keys -- rotate key_0123456789abcdef01234567 --grace 1h
  npm run keys -- revoke --token 3f9c0a71be
  npm run keys -- grant key_0123456789abcdef01234567 --publisher billing
  npm run --silent keys -- list --json
`;

const nameProblem = textProblem(LIMITS.nameLength, { singleLine: true });

const OPTIONS = {
  name: 'value',
  'expires-in': 'value',
  grace: 'value',
  token: 'value',
  publisher: 'value',
  limit: 'value',
  json: 'switch',
} as const;

type Values = ValuesOf<typeof OPTIONS>;

/** Executes a valid command. */
type Run = (keys: ApiKeysRepository) => Promise<Output>;

interface Command {
  /** Options in addition to --json. */
  options: readonly (keyof Values)[];
  /** @throws UsageError */
  read(positionals: string[], values: Values): Run;
}

const COMMANDS: Record<string, Command> = {
  create: {
    options: ['name', 'expires-in'],
    read(positionals, { name = '', ...values }) {
      if (positionals.length > 0) throw new UsageError('create takes no KEY: keys are random. Name it with --name.');
      const key = newApiKey();
      const problem = nameProblem(name);
      if (problem) throw new UsageError(`--name${problem}.`);
      const { secret, token } = newToken(expiry(values));
      return async (keys) => {
        await keys.create(key, name, token);
        return {
          lines: [`API key  ${key}`, ...secretLines(secret, token.expiresAt)],
          data: { key, name, ...secretData(secret, token) },
        };
      };
    },
  },
  list: {
    options: ['limit'],
    read([text, ...stray], { limit }) {
      if (stray.length > 0) throw new UsageError('list takes one TEXT.');
      const most = limit === undefined ? MOST_LISTED : wholeNumber('--limit', limit, 1_000_000);
      return async (keys) => {
        const found = await keys.list(text, most + 1);
        const [listed, more] = [found.slice(0, most), found.length > most];
        const lines = listed.length > 0 ? listed.flatMap(listLines) : ['There are no such API keys.'];
        if (more) lines.push(`These are the first ${most}: give a TEXT, or a greater --limit.`);
        return { lines, data: { keys: listed, more } };
      };
    },
  },
  'issue-token': {
    options: ['expires-in'],
    read(positionals, values) {
      const key = onlyKey('issue-token', positionals);
      const { secret, token } = newToken(expiry(values));
      return async (keys) => {
        if (!(await keys.issueToken(key, token))) throw unknownKey(key);
        return { lines: secretLines(secret, token.expiresAt), data: { key, ...secretData(secret, token) } };
      };
    },
  },
  rotate: {
    options: ['grace', 'expires-in'],
    read(positionals, { grace = '24h', ...values }) {
      const key = onlyKey('rotate', positionals);
      const graceSeconds = seconds('--grace', grace, 0);
      const { secret, token } = newToken(expiry(values));
      return async (keys) => {
        if (!(await keys.rotate(key, token, graceSeconds))) throw unknownKey(key);
        return {
          lines: [...secretLines(secret, token.expiresAt), `Earlier tokens expire in ${grace}.`],
          data: { key, ...secretData(secret, token), graceSeconds },
        };
      };
    },
  },
  disable: { options: [], read: (positionals) => setDisabled(onlyKey('disable', positionals), true) },
  enable: { options: [], read: (positionals) => setDisabled(onlyKey('enable', positionals), false) },
  revoke: {
    options: ['token'],
    read(positionals, { token: id }) {
      if ((id === undefined) === (positionals.length === 0)) throw new UsageError('revoke takes a KEY or --token ID.');
      if (id === undefined) return revokeAll(onlyKey('revoke', positionals));
      return async (keys) => {
        if (!(await keys.revokeToken(id))) throw new KeyError(`There is no token with the id "${id}".`);
        return { lines: [`Token ${id} is revoked.`], data: { revoked: [id] } };
      };
    },
  },
  grant: {
    options: ['publisher'],
    read(positionals, values) {
      const [key, publisher] = [onlyKey('grant', positionals), account('grant', values)];
      const who = publisher === ANYBODY ? 'Every publisher that the broker accepts' : `The broker account "${publisher}"`;
      return async (keys) => {
        if (!(await keys.grant(key, publisher))) throw unknownKey(key);
        return { lines: [`${who} may publish for ${key}, within 5 s.`], data: { key, publisher } };
      };
    },
  },
  withdraw: {
    options: ['publisher'],
    read(positionals, values) {
      const [key, publisher] = [onlyKey('withdraw', positionals), account('withdraw', values)];
      return async (keys) => {
        if (!(await keys.withdraw(key, publisher))) throw new KeyError(`"${publisher}" has no grant for the API key "${key}".`);
        return { lines: [`"${publisher}" may no longer publish for ${key}.`], data: { key, publisher } };
      };
    },
  },
};

const setDisabled =
  (key: string, disabled: boolean): Run =>
  async (keys) => {
    if (!(await keys.setDisabled(key, disabled))) throw unknownKey(key);
    return { lines: [`${key} is ${disabled ? 'disabled' : 'enabled'}.`], data: { key, disabled } };
  };

const revokeAll =
  (key: string): Run =>
  async (keys) => {
    const revoked = await keys.revokeAll(key);
    if (!revoked) throw unknownKey(key);
    const [{ publishers } = { publishers: [] }] = await keys.list(key, 1);
    const left = `Broker accounts still publish for it: ${publishers.join(', ')}. npm run keys -- disable ${key} ends that, too.`;
    return {
      lines: [`Revoked ${revoked.length} token(s) of ${key}.`, ...(publishers.length > 0 ? [left] : [])],
      data: { key, revoked },
    };
  };

/**
 * @returns undefined when --help is given
 * @throws UsageError
 */
export function readCommandLine(args: string[]): Run | undefined {
  const commands = Object.fromEntries(
    Object.entries(COMMANDS).map(([name, { options }]) => [name, [...options, 'json'] as const]),
  );
  const understood = readArguments({ options: OPTIONS, commands }, args);
  if (!understood) return undefined;
  const { command, words, values } = understood;
  return COMMANDS[command].read(words, values);
}

function onlyKey(command: string, [key, ...more]: string[]): string {
  if (key === undefined || more.length > 0) throw new UsageError(`${command} takes one KEY.`);
  return key;
}

function account(command: string, { publisher }: Values): string {
  if (publisher === undefined) throw new UsageError(`${command} needs --publisher ACCOUNT.`);
  const problem = identifierProblem(publisher);
  if (problem) throw new UsageError(`--publisher${problem}.`);
  return publisher;
}

const unknownKey = (key: string) => new KeyError(`There is no API key "${key}".`);

/** More lines than anybody reads. */
const MOST_LISTED = 1000;

const LONGEST_SECONDS = 100 * 365 * 86_400;

function seconds(option: string, text: string, min: number): number {
  const value = milliseconds(text, ['s', 'm', 'h', 'd']) / 1000;
  if (value >= min && value <= LONGEST_SECONDS) return value;
  throw new UsageError(`${option} must be a number with s, m, h or d, such as 90d.`);
}

function expiry({ 'expires-in': text }: Values): Date | undefined {
  return text === undefined ? undefined : new Date(Date.now() + seconds('--expires-in', text, 1) * 1000);
}

function secretLines(secret: string, expiresAt: Date | undefined): string[] {
  return [
    `Token    ${secret}`,
    ...(expiresAt ? [`Expires  ${expiresAt.toISOString()}`] : []),
    'The token is not stored and cannot be shown again.',
  ];
}

const secretData = (secret: string, { id, expiresAt }: { id: string; expiresAt?: Date }) => ({
  token: secret,
  tokenId: id,
  expiresAt: expiresAt ?? null,
});

function listLines({ key, name, disabled, createdAt, tokens, publishers }: ListedKey): string[] {
  const head = [key, disabled ? 'disabled' : 'enabled', `created ${createdAt.toISOString()}`, ...(name ? [name] : [])];
  const lines = tokens.map(
    ({ id, createdAt: since, expiresAt }) =>
      `  token ${id}  created ${since.toISOString()}  ${expiresAt ? `expires ${expiresAt.toISOString()}` : 'does not expire'}`,
  );
  return [
    head.join('  '),
    ...(lines.length > 0 ? lines : ['  no live token']),
    ...publishers.map((publisher) => `  publisher ${publisher}`),
  ];
}
