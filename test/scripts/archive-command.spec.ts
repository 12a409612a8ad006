import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Script, testDirectory } from './script';

/** The shell command of docs/operations.md, which the tests of backups use as well. */
describe('the command that archives the log', () => {
  const files = testDirectory();
  const archived = files.path('wal/piece');
  let command: string;

  beforeAll(async () => {
    const [setting] = (await new Script(
      `
      import { archiveSettings } from './scripts/servers/postgres/archive.mjs';
      console.log(JSON.stringify(archiveSettings(process.argv[1], undefined).filter((one) => one.startsWith('archive_command='))));
    `,
      [files.path('')],
    ).next()) as [string];
    command = setting.slice('archive_command='.length);
  });
  afterAll(async () => {
    await Script.endAll();
    files.remove();
  });

  /** Runs it as PostgreSQL does. @returns whether PostgreSQL takes the piece for archived */
  const archive = (content: string, name = 'piece', env = process.env): boolean => {
    writeFileSync(files.path('piece'), content);
    const filled = command.replaceAll('%p', files.path('piece')).replaceAll('%f', name);
    return spawnSync('sh', ['-c', filled], { env }).status === 0;
  };

  it('is that of the documentation', () => {
    const [, documented = ''] = /^archive_command = '(.*)'$/m.exec(readFileSync('docs/operations.md', 'utf8')) ?? [];
    expect(command).toBe(documented.replaceAll('/archive/wal', files.path('wal')));
  });

  it('has a piece on disk before its name, and the name before PostgreSQL may remove the piece', () => {
    const [programs, flushed] = [files.path('bin'), files.path('flushed')];
    mkdirSync(programs);
    writeFileSync(`${programs}/sync`, `#!/bin/sh\necho "$1 $(ls ${files.path('wal')})" >> ${flushed}\n`, { mode: 0o755 });
    archive('flushed', 'first', { ...process.env, PATH: `${programs}:${process.env.PATH}` });
    expect(readFileSync(flushed, 'utf8').trim().split('\n')).toEqual([
      `${files.path('wal')}/first.new first.new`,
      `${files.path('wal')} first`,
    ]);
  });

  it('takes a piece again that PostgreSQL has archived before it crashed, and no other piece of that name', () => {
    expect([archive('one'), archive('one'), archive('another')]).toEqual([true, true, false]);
    expect(readFileSync(archived, 'utf8')).toBe('one');
    expect(existsSync(`${archived}.new`)).toBe(false);
  });
});
