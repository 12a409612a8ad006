import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
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
  const archive = (content: string): boolean => {
    writeFileSync(files.path('piece'), content);
    const filled = command.replaceAll('%p', files.path('piece')).replaceAll('%f', 'piece');
    return spawnSync('sh', ['-c', filled]).status === 0;
  };

  it('is that of the documentation', () => {
    const [, documented = ''] = /^archive_command = '(.*)'$/m.exec(readFileSync('docs/operations.md', 'utf8')) ?? [];
    expect(command).toBe(documented.replaceAll('/archive/wal', files.path('wal')));
  });

  it('takes a piece again that PostgreSQL has archived before it crashed, and no other piece of that name', () => {
    expect([archive('one'), archive('one'), archive('another')]).toEqual([true, true, false]);
    expect(readFileSync(archived, 'utf8')).toBe('one');
    expect(existsSync(`${archived}.new`)).toBe(false);
  });
});
