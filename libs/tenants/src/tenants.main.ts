import '@app/runtime/stop-while-starting';
import { databaseProblem } from '@app/postgres/tool';
import { UsageError, readArguments } from '@app/runtime/command-line';
import { counted } from '@app/runtime/counted';
import { databaseTlsFiles } from '@app/runtime/settings/tls-settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { TenantsConfig } from './config';
import { copyTenant, type Rows } from './copy-tenant';
import { removeTenant } from './remove-tenant';
import { TenantObstacle, onServer } from './tenant-database';

const HELP = `Copies a tenant to another installation, or removes it from one. A tenant is an API key with all its organizations.

Usage: npm run tenants -- COMMAND KEY [options]

  copy KEY           to the installation of TARGET_DATABASE_URL, in one transaction. The key arrives disabled, with its tokens
  remove KEY --yes   deletes everything of the tenant, and the key last. Repeat it later: an event may have been on its way

  --json             the result as one JSON object: { rows: { "<schema>.<table>": <number> } }
  --help             this text

Both want the key to be disabled, its events published and its erasures complete; copy also wants notifications to have the events. Other
tenants are not affected. The steps of a whole move are in docs/scaling.md. The database is that of DATABASE_URL, with the full-rights account,
else that of a running "npm start".
Exit codes: 0 done, 1 it cannot be done, 2 wrong usage.

Examples:
  npm run keys -- disable acme
  npm run tenants -- copy acme
  npm run tenants -- remove acme --yes
`;

const output = new ToolOutput();

async function main(args: string[]): Promise<void> {
  const asked = readCommandLine(args);
  if (!asked) return console.log(HELP.trimEnd());
  const { command, apiKey } = asked;
  const config = new TenantsConfig();
  const tlsFiles = databaseTlsFiles(config);
  const source = { url: config.databaseUrl, tlsFiles };
  const progress = (line: string) => output.progress(line);
  if (command === 'remove') {
    const rows = await onServer('DATABASE_URL', source, (client) => removeTenant(client, apiKey, progress));
    return output.result({
      data: { rows },
      lines: [`Removed ${counted(sum(rows), 'row')} of ${apiKey}. Repeat it later, for what was on its way.`],
    });
  }
  const { targetUrl } = config;
  if (!targetUrl) throw new UsageError('copy needs TARGET_DATABASE_URL in the environment.');
  const rows = await onServer('DATABASE_URL', source, (from) =>
    onServer('TARGET_DATABASE_URL', { url: targetUrl, tlsFiles }, (to) => copyTenant(from, to, apiKey, progress)),
  );
  const lines = [`Copied ${counted(sum(rows), 'row')} of ${apiKey}. Now run there: npm run keys -- enable ${apiKey}`];
  output.result({ data: { rows }, lines });
}

function readCommandLine(args: string[]): { command: 'copy' | 'remove'; apiKey: string } | undefined {
  const understood = readArguments(
    { options: { json: 'switch', yes: 'switch' }, commands: { copy: ['json'], remove: ['json', 'yes'] } },
    args,
  );
  if (!understood) return undefined;
  const { command, words, values } = understood;
  const [apiKey, more] = words;
  if (!apiKey) throw new UsageError(`${command} needs an API key.`);
  if (more !== undefined) throw new UsageError(`"${more}" is one word too many.`);
  if (command === 'remove' && !values.yes) throw new UsageError('remove deletes permanently: give --yes.');
  return { command, apiKey };
}

const sum = (rows: Rows): number => Object.values(rows).reduce((total, count) => total + count, 0);

main(process.argv.slice(2)).catch((error: unknown) =>
  output.failure('tenants', error, (one) => (one instanceof TenantObstacle ? one.message : databaseProblem(one))),
);
