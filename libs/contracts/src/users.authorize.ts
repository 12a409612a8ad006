import { Field, Flag } from './fields';
import { query } from './message';

/** Longest name of a broker account, because it is sent as an AMQP short string. */
const MAX_BYTES = 255;

export class AuthorizeRequest {
  @Field(
    (value) =>
      typeof value === 'string' && Buffer.byteLength(value) <= MAX_BYTES ? undefined : ' must be the name of an account',
    {
      type: 'string',
      description: 'Broker account that published a message, checked by the broker; empty when the message has no user_id.',
    },
  )
  publisher: string;
}

export class AuthorizeResult {
  @Flag('Whether that account may act for the API key of the call.')
  granted: boolean;
}

export const Authorize = query('users.authorize.v1', AuthorizeRequest, AuthorizeResult, {
  callers: ['notifications'],
  purpose: 'Checks whether a broker account may publish commands and queries for the API key of the call.',
  example: { request: { publisher: 'billing' }, result: { granted: true } },
});
