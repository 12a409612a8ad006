import type { DataSource } from 'typeorm';
import { hashOf } from '../credentials';
import { ApiKeysRepository } from './api-keys.repository';

/** Creates the published key and token with which the first calls are tried. What exists stays as it is, revoked or not. */
export async function createDemoCredentials(dataSource: DataSource): Promise<void> {
  const token = { id: 'demo', hash: hashOf('demo-token') };
  await new ApiKeysRepository(dataSource).create('demo-key', 'Demonstration', token);
}
