import type { ErrorStatus } from './error';

/** The services that own messages. Each has the queues `<service>.commands` and `<service>.queries`. */
export type ServiceName = 'users' | 'notifications';

/** A class whose decorators are the contract of a message body. */
export interface BodyClass<T> {
  new (): T;
  /** A rule over several fields: the problem as one sentence, or undefined. Runs after every field has passed. */
  refuse?(body: T): string | undefined;
}

/**
 * A command changes something and is published persistent, to a quorum queue, with a confirm. A query reads, waits in a queue of its own
 * so that a backlog of writes cannot delay it, and expires with its caller's deadline.
 *
 * @typeParam Request the body: the class as JSON, nothing around it
 * @typeParam Result  the body of a successful reply
 */
export interface Message<Request, Result> {
  readonly kind: 'command' | 'query';
  readonly service: ServiceName;
  /** Routing key in exchange `commands`: `<service>.<operation>.v<major>`, or `<noun>.<operation>.v<major>` for a noun of the service. */
  readonly pattern: string;
  readonly request: BodyClass<Request>;
  /** The class that describes a successful reply. */
  readonly result: new () => Result;
  /** What it is for, as prose with code in backticks; documentation is made of it. */
  readonly purpose: string;
  /** A body that a new system accepts for `demo-key`, and the body of a reply to it. */
  readonly example: { readonly request: Request; readonly result: Result };
  /** When it fails for reasons of its own, beside those that every message has. */
  readonly errors?: Readonly<Partial<Record<ErrorStatus, string>>>;
  /** Headers of a successful reply beside `x-status`: all strings, always there. */
  readonly replyHeaders?: Readonly<Record<string, { description: string; example: string }>>;
  /** Needs no `x-api-key`. */
  readonly tenantless?: boolean;
}

type Pattern = `${string}.${string}.v${number}`;
type MessageOptions<Request, Result> = Pick<
  Message<Request, Result>,
  'purpose' | 'example' | 'errors' | 'replyHeaders' | 'tenantless'
> & {
  /** Default: the first word of the pattern. */
  service?: ServiceName;
};

function message<Request, Result>(
  kind: 'command' | 'query',
  pattern: Pattern,
  request: BodyClass<Request>,
  result: new () => Result,
  options: MessageOptions<NoInfer<Request>, NoInfer<Result>>,
): Message<Request, Result> {
  const service = pattern.slice(0, pattern.indexOf('.')) as ServiceName;
  return { kind, pattern, request, result, service, ...options };
}

/** Declares a command under its routing key. */
export const command = <Request, Result>(
  pattern: Pattern,
  request: BodyClass<Request>,
  result: new () => Result,
  options: MessageOptions<NoInfer<Request>, NoInfer<Result>>,
) => message('command', pattern, request, result, options);

/** Declares a query under its routing key. */
export const query = <Request, Result>(
  pattern: Pattern,
  request: BodyClass<Request>,
  result: new () => Result,
  options: MessageOptions<NoInfer<Request>, NoInfer<Result>>,
) => message('query', pattern, request, result, options);
