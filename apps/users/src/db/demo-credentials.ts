import type { DataSource } from 'typeorm';
import { hashOf } from '@app/api-keys/credentials';
import { ANYBODY, ApiKeysRepository } from '@app/api-keys/api-keys.repository';

/**
 * Creates the published demo key and token for first calls, over HTTP and through the broker. Existing ones stay unchanged, even when revoked.
 */
export async function createDemoCredentials(dataSource: DataSource): Promise<void> {
  const token = { id: 'demo', hash: hashOf('demo-token') };
  const apiKeys = new ApiKeysRepository(dataSource);
  if (await apiKeys.create('demo-key', 'Demonstration', token)) await apiKeys.grant('demo-key', ANYBODY);
}
