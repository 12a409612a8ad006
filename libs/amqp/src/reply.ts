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
