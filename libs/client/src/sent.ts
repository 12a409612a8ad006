/** A body to send. An optional field of it may be undefined as well: JSON leaves that out. */
export type Sent<Body> = Body extends readonly (infer Entry)[]
  ? Sent<Entry>[]
  : Body extends object
    ? string extends keyof Body
      ? FreeData
      : { [Field in keyof Body]: Sent<Body[Field]> | (object extends Pick<Body, Field> ? undefined : never) }
    : Body;

/** An object of any interface, and no list: services refuse that. */
interface FreeData {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- interfaces have no index signature, and only this one asks for none
  readonly [name: string]: any;
  readonly [Symbol.iterator]?: never;
}

/** A body of a command that deletes or changes more without a field. An undefined one is not sent, so only a page token may be undefined. */
export type SentWhole<Body> = Omit<Body, 'pageToken'> & Sent<Pick<Body, Extract<keyof Body, 'pageToken'>>>;
