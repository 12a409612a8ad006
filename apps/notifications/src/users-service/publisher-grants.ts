import { Authorize } from '@app/contracts/users.authorize';
import type { PublisherRules } from '@app/rabbitmq/server/publisher-rights';
import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import { askUsers } from './ask-users';

/** Asks the users service whether a publisher may act for an API key. */
export const publisherGrants =
  (client: RabbitClient): PublisherRules['isGranted'] =>
  async (publisher, apiKey, context) =>
    (await askUsers(client, Authorize, { publisher }, { ...context, apiKey })).granted;
