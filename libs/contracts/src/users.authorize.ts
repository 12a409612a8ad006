import { Field, Flag } from './fields';
import { query } from './message';

/** The longest name that a broker account may have: it travels as an AMQP short string. */
const MAX_BYTES = 255;

export class AuthorizeRequest {
  @Field(
    (value) =>
      typeof value === 'string' && Buffer.byteLength(value) <= MAX_BYTES ? undefined : ' must be the name of an account',
    {
      type: 'string',
      description: 'Broker account that published a message, as the broker has checked it; empty when the message does not tell.',
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
  purpose: 'Asks whether a broker account may publish commands and queries for the API key of the call.',
  example: { request: { publisher: 'billing' }, result: { granted: true } },
});
