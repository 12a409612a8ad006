/**
 * A body to send. An optional field of it may be undefined as well: JSON leaves that out. Free data may be of any interface, which would need an
 * index signature for a record.
 */
export type Sent<Body> = Body extends readonly (infer Entry)[]
  ? Sent<Entry>[]
  : Body extends object
    ? string extends keyof Body
      ? object
      : { [Field in keyof Body]: Sent<Body[Field]> | (object extends Pick<Body, Field> ? undefined : never) }
    : Body;

/** A body of a command that deletes or changes more without a field. An undefined one is not sent, so only a page token may be undefined. */
export type SentWhole<Body> = Omit<Body, 'pageToken'> & Sent<Pick<Body, Extract<keyof Body, 'pageToken'>>>;
