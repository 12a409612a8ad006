/**
 * What a handler returns when its reply needs headers of its own; else it returns the result itself.
 *
 * @typeParam T the result: the JSON body of the reply
 */
export class Reply<T> {
  /** @param headers AMQP headers of the reply, together well below 64 KiB; `x-status` is the transport's and cannot be set */
  constructor(
    readonly result: T,
    readonly headers: Readonly<Record<string, string | number | boolean>> = {},
  ) {}
}

/** A result that is JSON text already: it is sent as it is. */
export class JsonText<T> {
  /** Only for the compiler: what the text stands for. */
  declare readonly value: T;

  constructor(readonly text: string) {}
}
