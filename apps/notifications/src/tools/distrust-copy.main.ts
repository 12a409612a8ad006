import '@app/runtime/stop-while-starting';
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { databaseProblem, onDatabase } from '@app/postgres/tool';
import { soFar } from '@app/runtime/so-far';
import { ToolOutput } from '@app/runtime/tool-output';
import { CopyConfig } from '../config';
import { DistrustRepository, WALKS } from '../db/distrust.repository';
import { DATABASE } from '../db/schema';
import { FETCH_MS, TRUST_MS } from '../users-service/members';

const PAGE = 5000;
const PAGE_OF_USERS = 100;
const output = new ToolOutput();

/**
 * First half of `npm run copy -- rebuild`: marks the copy of memberships as not trusted. Then each read asks the users service about its user,
 * adds missing memberships and ends wrong ones. The next event of a membership or a document is applied with any version.
 */
async function main(): Promise<void> {
  const settings = { name: 'notifications copy', config: new CopyConfig(), ...DATABASE };
  await onDatabase(settings, async (dataSource) => {
    const copy = new DistrustRepository(dataSource);
    const say = soFar((line) => output.progress(line));
    const walk = (name: keyof typeof WALKS, size = PAGE) => copy.walk(WALKS[name], size, (rows) => say(name, rows));
    // Each row is a user, who may have thousands of memberships.
    await walk('departures', PAGE_OF_USERS);
    await walk('members');
    await copy.forgetTimes();
    await walk('documents');
    // A read may have fetched a part before these walks. It marks its user as complete by then, with seconds for the statement, or begins anew.
    await sleep(FETCH_MS + TRUST_MS);
    await walk('complete members');
    await sleep(TRUST_MS);
    output.progress('From now on every read asks the users service for its user.');
  });
}

main().catch((error: unknown) => output.failure('copy', error, databaseProblem));
