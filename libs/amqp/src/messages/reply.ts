/**
 * Return value of a handler whose reply needs extra headers. Other handlers return the result itself.
 *
 * @typeParam T the result: the JSON body of the reply
 */
export class Reply<T> {
  /** @param headers AMQP headers of the reply, in total well below 64 KiB. `x-status` is reserved for the transport */
  constructor(
    readonly result: T,
    readonly headers: Readonly<Record<string, string | number | boolean>> = {},
  ) {}
}

/** A result that is JSON already, in UTF-8. It is sent unchanged. */
export class JsonBytes<T> {
  /** Type of the JSON value, only for the compiler. */
  declare readonly value: T;

  constructor(readonly bytes: Buffer) {}
}
