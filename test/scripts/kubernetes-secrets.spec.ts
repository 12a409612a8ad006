import { execFileSync, spawnSync } from 'node:child_process';
import { parseAllDocuments } from 'yaml';

interface Secret {
  metadata: { name: string; namespace: string };
  stringData: { username: string; password: string; url: string };
}

const PROGRAM = 'deploy/kubernetes/production/secrets.sh';

const secrets = (...args: string[]) =>
  parseAllDocuments(execFileSync('sh', [PROGRAM, ...args], { encoding: 'utf8' })).map((document) => document.toJS() as Secret);

describe('the Secrets of production', () => {
  it('can be had one by one, each with a new password', () => {
    const [first, second] = [secrets('cell-1', 'users-broker', 'users-database'), secrets('cell-1', 'users-broker')];
    expect(first.map(({ metadata }) => metadata)).toMatchObject([
      { name: 'users-broker', namespace: 'cell-1' },
      { name: 'users-database', namespace: 'cell-1' },
    ]);
    expect(second.map(({ metadata }) => metadata.name)).toEqual(['users-broker']);
    const passwords = [...first, ...second].map(({ stringData }) => stringData.password);
    expect(new Set(passwords).size).toBe(passwords.length);
  });

  it('are refused by a name that none of them has', () => {
    const { status, stdout, stderr } = spawnSync('sh', [PROGRAM, 'cell-1', 'user-broker'], { encoding: 'utf8' });
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^There is no Secret user-broker; there are: gateway-broker, users-broker, .*scaler-broker\.$/m);
  });

  it('have the password in the URL', () => {
    const both = secrets('cell-1', 'gateway-broker', 'notifications-database');
    expect(both).toHaveLength(2);
    for (const { stringData } of both) expect(stringData.url).toContain(`://${stringData.username}:${stringData.password}@`);
  });
});
