import * as fc from 'fast-check';
import { report } from '@app/testing/report';
import { OPERATIONS } from '@app/testing/system/system';
import { amountOf, SEED, Tally } from './campaign';
import { DirectPublisher } from './direct-publisher';
import { HttpClient } from './http-client';
import { SharedRun, TenantCaller } from './tenant-caller';
import { TenantDoor } from './tenant-door';
import { intrusions, program } from './tenant-steps';
import { expectNoRowsOfOthers } from './tenant-tables';
import { WatchedSystem } from './watched-system';

const TENANTS = 4;
const RUNS = amountOf('SECURITY_ISOLATION_RUNS', 2);
/** Requests of one tenant in a run. All tenants run concurrently, so that a batch of the writer has rows of several. */
const STEPS = 120;
const INTRUSIONS = 90;
const TIME_LIMIT_MS = 60_000 + RUNS * 60_000;

describe('tenants', () => {
  let watched: WatchedSystem;
  let http: HttpClient;
  let publisher: DirectPublisher;
  const tally = new Tally();
  let run = 0;

  beforeAll(async () => {
    // One more, the intruder: it removes, marks, erases and reads with the ids of the others.
    watched = await WatchedSystem.start(TENANTS + 1);
    http = new HttpClient(watched.system.services.gateway.url, TENANTS + 1);
    publisher = await DirectPublisher.connect(watched.system.amqpUrl);
  });
  afterAll(async () => {
    http?.close();
    await publisher?.close();
    await watched?.stop();
  });

  it(
    'never see, change or learn of each other, even with shared ids and keys',
    async () => {
      const programs = fc.tuple(...Array.from({ length: TENANTS }, () => program(STEPS)));
      await fc.assert(
        fc.asyncProperty(programs, intrusions(INTRUSIONS), async (ofTenants, intruding) => {
          const shared = new SharedRun(`run ${run++} ${watched.canary}`);
          const callerOf = (index: number) => {
            const door = new TenantDoor(http, publisher, watched.tenants, index, tally);
            return new TenantCaller(shared, door, watched.sql, (what) => tally.add(what));
          };
          const [intruder, ...tenants] = watched.tenants.map((_, index) => callerOf(index)).reverse();
          const ends = await Promise.allSettled([
            intruder.follow(intruding, false),
            ...tenants.map((tenant, index) => tenant.follow(ofTenants[index])),
          ]);
          for (const end of ends) if (end.status === 'rejected') throw end.reason;
          for (const tenant of [intruder, ...tenants]) await tenant.compareTables();
          await expectNoRowsOfOthers(watched.sql, watched.tenants);
        }),
        // The seed does not determine how the tenants interleave: a replay may need several runs.
        {
          seed: SEED,
          path: process.env.SECURITY_PATH,
          numRuns: RUNS,
          unbiased: true,
          // A run takes many seconds, and a shorter one may not fail.
          endOnFailure: true,
          interruptAfterTimeLimit: TIME_LIMIT_MS,
          markInterruptAsFailure: true,
        },
      );
    },
    TIME_LIMIT_MS + 300_000,
  );

  it('used every operation, over HTTP and AMQP, with every outcome', () => {
    report({ tenants: TENANTS, runs: run, ...tally.toJSON() });
    for (const operation of OPERATIONS)
      for (const through of ['http', 'queue'])
        expect([operation, through, tally.of(`${operation} ${through} OK`)]).not.toContain(0);
    for (const refusal of ['NOT_FOUND', 'ALREADY_EXISTS', 'FAILED_PRECONDITION'])
      expect(tally.of(`notifications/add http ${refusal}`) + tally.of(`notifications/add queue ${refusal}`)).toBeGreaterThan(0);
    for (const operation of ['users/delete', 'notifications/delete', 'notifications/update'])
      for (const success of [true, false])
        expect([operation, success, tally.of(`${operation} with success: ${success}`)]).not.toContain(0);
    for (const what of ['foreign page token', 'row', 'user', 'inbox with read ones', 'inbox with unread ones'])
      expect([what, tally.of(what)]).not.toContain(0);
  });

  it('leave every service running, and no token, password or body in its log', () => {
    watched.readLogs();
    expect(watched.verdict).toEqual({ lines: expect.any(Number), findings: [] });
    expect(watched.verdict.lines).toBeGreaterThan(100);
  });
});
