import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDataSource } from '@app/postgres/data-source';
import { databaseProblem, onDatabase } from '@app/postgres/tool';
import { configOrExit } from '@app/runtime/run-service';
import { databaseTlsFiles } from '@app/runtime/tls-settings';
import { copyConfig } from '../config';
import { MembersRepository, type CopyPosition } from '../db/members.repository';
import { DATABASE } from '../db/schema';
import { TRUST_MS } from '../users-service/members';

const PAGE = 5000;

/**
 * First half of `npm run copy -- rebuild`: marks the copy of memberships as not trusted. Then each read asks the users service about its user,
 * adds missing memberships and removes wrong ones. The next event of a document is applied with any version.
 */
async function main(): Promise<void> {
  const config = configOrExit(copyConfig);
  const dataSource = createDataSource({
    name: 'notifications copy',
    url: config.databaseUrl,
    tlsFiles: databaseTlsFiles(config),
    ...DATABASE,
    poolSize: 1,
  });
  await onDatabase(dataSource, async () => {
    const members = new MembersRepository(dataSource);
    await toTheEnd((after) => members.distrustUsers(after, PAGE));
    await toTheEnd((after) => members.distrustDocuments(after, PAGE));
    await sleep(TRUST_MS);
    console.log('From now on every read asks the users service for its user.');
  });
}

async function toTheEnd(page: (after: CopyPosition) => Promise<CopyPosition | undefined>): Promise<void> {
  for (let after: CopyPosition | undefined = ['0', '']; after;) after = await page(after);
}

main().catch((error: unknown) => {
  console.error(databaseProblem(error));
  process.exitCode = 1;
});
