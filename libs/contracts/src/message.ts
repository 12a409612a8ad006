import type { ErrorStatus } from './error';

/** The services that own messages. The names of their queues begin with theirs. */
export type ServiceName = 'users' | 'notifications';

/** The answer of a rule over several fields. */
export interface Refusal {
  /** The problem as one sentence. */
  message: string;
  /** Paths of the fields that it is about, without `data`; at least one. */
  fields: readonly [string, ...string[]];
}

/** Names a field in a message as its caller sends it: over HTTP with `data` in front. Without a field: the body. */
export type Naming = (field?: string) => string;

/** A body as it came, also with fields that the contract does not have. */
export type Sent = Readonly<Record<string, unknown>>;

/** A class whose decorators are the contract of a message body. */
export interface BodyClass<T> {
  new (): T;
  /** A rule over several fields. Runs after every field has passed. */
  refuse?(body: T, sent: Sent, named: Naming): Refusal | undefined;
}

/** A process of this system that publishes messages: see {@link Message.callers}. */
export type CallerName = 'gateway' | ServiceName;

/** An error that an operation has for reasons of its own. */
export interface OwnError {
  /** As prose with code in backticks. */
  readonly when: string;
  /** The text of the error, as an example. */
  readonly message: string;
}

interface Example<T> {
  readonly summary: string;
  readonly value: T;
}

/** `/v1/<resource>/<operation>` */
type Path = `/v1/${string}/${string}`;

/** The HTTP operation of a message: POST with the body `{"data": <request>}`, answered with `{"result": <result>}`. */
export interface HttpOperation<Request, Result, P extends Path = Path> {
  readonly path: P;
  readonly summary: string;
  /** One or two sentences for the table in README.md: what the operation does, and what its callers often overlook. */
  readonly effect: string;
  readonly goodToKnow: string;
  /** As prose in Markdown. */
  readonly description: string;
  /** Whether the header `Idempotency-Key` makes the call repeatable. */
  readonly idempotent?: boolean;
  readonly examples: {
    readonly request: Readonly<Record<string, Example<Request>>>;
    readonly result: Readonly<Record<string, Example<Result>>>;
  };
}

/**
 * A command changes something and is published persistent, to a quorum queue, with a confirm. A query reads, waits in a queue of its own
 * so that a backlog of writes cannot delay it, and expires with its caller's deadline.
 *
 * The only declaration of an operation: bindings, rights at the broker, OpenAPI, AsyncAPI and the client's list are derived from it.
 *
 * @typeParam Request the body: the class as JSON, nothing around it
 * @typeParam Result  the body of a successful reply
 * @typeParam P       the path of its HTTP operation; never without one
 */
export interface Message<Request, Result, P extends Path = Path> {
  readonly kind: 'command' | 'query';
  readonly service: ServiceName;
  /** Routing key in exchange `calls` and in each lane: `<service>.<operation>.v<major>`, or `<noun>.<operation>.v<major>` for a noun of the service. */
  readonly pattern: string;
  readonly request: BodyClass<Request>;
  /** The class that describes a successful reply. */
  readonly result: new () => Result;
  /** Prose with code in backticks, for the documentation. */
  readonly purpose: string;
  /** A body that a new system accepts for `demo-key`, and the body of a reply to it. */
  readonly example: { readonly request: Request; readonly result: Result };
  /** Processes of this system that may publish it: no other has the right at the broker. The gateway is one where there is `http`. */
  readonly callers: readonly CallerName[];
  /** Whether accounts of other services may be allowed to publish it. */
  readonly open: boolean;
  readonly http?: HttpOperation<Request, Result, P>;
  /** Errors of its own, beside those that every message has. */
  readonly errors?: Readonly<Partial<Record<ErrorStatus, OwnError>>>;
  /** Headers of a successful reply beside `x-status`: all strings, always there. Over HTTP they are percent-encoded. */
  readonly replyHeaders?: Readonly<Record<string, { description: string; example: string }>>;
  /** Needs no `x-api-key`. */
  readonly tenantless?: boolean;
  /** Whether its work is not in its body, but in the rows that it finds. Its handler states how many. */
  readonly changesRows?: boolean;
  /** A command with a smaller body is light. Default: 2 KiB. Less where few bytes are much work. */
  readonly lightBytes?: number;
}

type Pattern = `${string}.${string}.v${number}`;
type MessageOptions<Request, Result, P extends Path> = Pick<
  Message<Request, Result, P>,
  'purpose' | 'example' | 'http' | 'errors' | 'replyHeaders' | 'tenantless' | 'changesRows' | 'lightBytes'
> & {
  /** Default: the first word of the pattern. */
  service?: ServiceName;
  /** Default: none beside the gateway of `http`. */
  callers?: readonly CallerName[];
  /** Default: false. */
  open?: boolean;
};

const declares =
  (kind: 'command' | 'query') =>
  <Request, Result, P extends Path = never>(
    pattern: Pattern,
    request: BodyClass<Request>,
    result: new () => Result,
    { callers = [], open = false, ...options }: MessageOptions<NoInfer<Request>, NoInfer<Result>, P>,
  ): Message<Request, Result, P> => {
    const service = pattern.slice(0, pattern.indexOf('.')) as ServiceName;
    const publishers = options.http ? (['gateway', ...callers] as const) : callers;
    return { kind, pattern, request, result, service, open, callers: publishers, ...options };
  };

/** Declares a command under its routing key. */
export const command = declares('command');

/** Declares a query under its routing key. */
export const query = declares('query');
