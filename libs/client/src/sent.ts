/** A body to send. An optional field of it may be undefined as well: JSON leaves that out. */
export type Sent<Body> = Body extends readonly (infer Entry)[]
  ? Sent<Entry>[]
  : Body extends object
    ? { [Field in keyof Body]: Sent<Body[Field]> | (object extends Pick<Body, Field> ? undefined : never) }
    : Body;
