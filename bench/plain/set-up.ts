import 'reflect-metadata';
import { createHash } from 'node:crypto';
import { DataSource } from 'typeorm';
import { ApiKey, Notification, Recipient } from './entities';

/** Makes the tables from the entities, and the credentials of the benchmark. */
async function main() {
  const entities = [ApiKey, Notification, Recipient];
  const dataSource = new DataSource({ type: 'postgres', url: process.env.DATABASE_URL, entities, synchronize: true });
  await dataSource.initialize();
  const tokenHash = createHash('sha256').update('demo-token').digest('hex');
  await dataSource.getRepository(ApiKey).save({ key: 'demo-key', tokenHash });
  await dataSource.destroy();
}

void main();
