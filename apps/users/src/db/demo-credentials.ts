import type { DataSource } from 'typeorm';
import { hashOf } from './credentials';
import { ANYBODY, ApiKeysRepository } from './api-keys.repository';

/**
 * Creates the published key and token with which the first calls are tried, over HTTP and straight to the broker. What exists stays as it
 * is, revoked or not.
 */
export async function createDemoCredentials(dataSource: DataSource): Promise<void> {
  const token = { id: 'demo', hash: hashOf('demo-token') };
  const apiKeys = new ApiKeysRepository(dataSource);
  if (await apiKeys.create('demo-key', 'Demonstration', token)) await apiKeys.grant('demo-key', ANYBODY);
}
