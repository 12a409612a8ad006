import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, renameSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { eventually } from '@app/testing/eventually';
import { PrivateServer } from '@app/testing/system/private-server';
import { Findings } from '../finding';
import { lookAtArchive, lookAtSlots } from './log';

describe('the look at the log of the database', () => {
  let directory: string;
  let server: PrivateServer;
  let client: Client;

  const found = async (asked = client) => {
    const findings = new Findings('database');
    await lookAtArchive(findings, asked);
    return findings.all;
  };
  /** Ends a piece of the log, which is to be archived then. */
  const endPiece = () => client.query(`SELECT pg_logical_emit_message(false, 'piece', 'end'); SELECT pg_switch_wal()`);
  const finds = (state: string) =>
    eventually(async () => {
      const [archive] = await found();
      return archive?.state === state && /archived \d+ s ago$/.test(archive.found);
    }, 20_000);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'archive-'));
    server = await PrivateServer.start('postgres', '--archive', directory);
    client = new Client({ connectionString: server.url });
    await client.connect();
  }, 30_000);
  afterAll(async () => {
    await client?.end();
    await server?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  it('says for how long the log has not been archived, and that it fails, until it succeeds again', async () => {
    await endPiece();
    await finds('ok');
    const [log, elsewhere] = [join(directory, 'wal'), join(directory, 'elsewhere')];
    renameSync(log, elsewhere);
    await endPiece();
    await finds('problem');
    const [problem] = await found();
    expect(problem?.action).toContain('until its disk is full');
    renameSync(elsewhere, log);
    await endPiece();
    await finds('ok');
  });

  it('sees a command that hangs, by the piece of the log that has waited longest', async () => {
    const { rows } = await client.query<{ piece: string }>('SELECT pg_walfile_name(pg_current_wal_lsn()) AS piece');
    const [{ piece = '' } = {}] = rows;
    // The copy to it waits for a reader.
    const copy = join(directory, 'wal', `${piece}.new`);
    execFileSync('mkfifo', ['--mode=666', copy]);
    await endPiece();
    const waiting = join(server.directory, 'data/pg_wal/archive_status', `${piece}.ready`);
    await eventually(() => existsSync(waiting));
    expect(await found()).toMatchObject([{ state: 'ok' }]);
    const anHourAgo = Date.now() / 1000 - 3600;
    utimesSync(waiting, anHourAgo, anHourAgo);
    const [problem] = await found();
    expect(problem).toMatchObject({ state: 'problem', action: expect.stringContaining('hangs') as string });
    expect(problem?.found).toMatch(/has waited for 36\d\d s/);
    execFileSync('cat', [copy], { maxBuffer: Infinity });
    // No disk keeps it, so the command fails, and is repeated.
    rmSync(copy);
    await finds('ok');
  });

  it('sees that nothing says how to archive', async () => {
    const other = await PrivateServer.start('postgres', '--setting', 'archive_mode=on');
    const own = new Client({ connectionString: other.url });
    try {
      await own.connect();
      expect(await found(own)).toMatchObject([
        { state: 'problem', action: expect.stringMatching(/^set archive_command/) as string },
      ]);
    } finally {
      await own.end();
      await other.remove();
    }
  }, 30_000);

  it('names a replication slot that nobody reads, as long as it is there', async () => {
    const slots = async () => {
      const findings = new Findings('database');
      await lookAtSlots(findings, client);
      return findings.all;
    };
    await client.query(`SELECT pg_create_physical_replication_slot('gone', true)`);
    const [slot, ...others] = await slots();
    expect(others).toEqual([]);
    expect(slot).toMatchObject({ subject: 'replication slot gone', state: 'warning' });
    expect(slot?.found).toMatch(/keeps \d+ MB of its log/);
    await client.query(`ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'`);
    await client.query('SELECT pg_reload_conf()');
    await eventually(async () => {
      await endPiece();
      await client.query('CHECKPOINT');
      const [lost] = await slots();
      return lost?.found === 'the log that its standby needs is gone';
    });
    const [lost] = await slots();
    await client.query(lost?.action?.match(/SELECT \S+'\)/)?.[0] ?? '');
    expect(await slots()).toEqual([]);
  });
});
