import '@app/runtime/stop-while-starting';
import { readOptions, UsageError } from '@app/runtime/command-line';
import { ConfigError } from '@app/runtime/settings/settings';
import { ToolOutput } from '@app/runtime/tool-output';
import { DoctorConfig } from './config';
import { Findings, lineOf, type Finding } from './finding';

const HELP = `Says what is wrong with the configuration, the broker and the database, and what to do. Changes nothing.

Usage: npm run doctor -- [options]

  --json      one JSON object instead of lines: { ok, findings: [{ area, subject, state, found, action }] }
  --quiet     only warnings and problems
  --help      this text

It tries each account whose URL is set, as set-up and the services read them: AMQP_URL, DATABASE_URL, RABBITMQ_MANAGEMENT_URL, and
GATEWAY_AMQP_URL, USERS_AMQP_URL, NOTIFICATIONS_AMQP_URL, PUBLISHER_AMQP_URL, USERS_DATABASE_URL, NOTIFICATIONS_DATABASE_URL.
Without any of them it looks at a running "npm start". It tries what must work, and what must be refused.
Exit codes: 0 no problem, 1 a problem, 2 wrong usage.

Examples:
  npm run doctor
  npm run doctor -- --quiet
  docker compose run --rm tools node scripts/tool.mjs doctor --json
`;

const output = new ToolOutput();

function readCommandLine(args: string[]): { json?: boolean; quiet?: boolean } | undefined {
  const read = readOptions('doctor', { json: 'switch', quiet: 'switch' } as const, args);
  if (read && read.words.length > 0) throw new UsageError(`doctor takes no ${read.words[0]}: it has options only.`);
  return read?.values;
}

async function main(args: string[]): Promise<void> {
  const asked = readCommandLine(args);
  if (!asked) return console.log(HELP.trimEnd());
  const findings = await findAll();
  const ok = findings.every(({ state }) => state !== 'problem');
  const shown = asked.quiet ? findings.filter(({ state }) => state === 'warning' || state === 'problem') : findings;
  if (asked.json) console.log(JSON.stringify({ ok, findings: shown }, undefined, 2));
  else for (const finding of shown) console.log(lineOf(finding));
  if (!asked.json && ok) console.log('No problem.');
  if (!ok) process.exitCode = 1;
}

/** A wrong configuration is a finding as well: nothing else can be looked at. */
async function findAll(): Promise<Finding[]> {
  const findings = new Findings('configuration');
  try {
    const config = new DoctorConfig();
    // Most of the time of a start is for these packages: help and a wrong configuration do without.
    const { examine } = await import('./doctor.js');
    const found = await examine(config);
    if (found.some(({ state }) => state !== 'skipped')) return found;
    findings.problem('variables', 'no URL is set', 'run "npm start" in another terminal, or set AMQP_URL and DATABASE_URL');
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const problem of error.problems) findings.problem('variables', problem, 'correct it');
  }
  return findings.all;
}

main(process.argv.slice(2)).catch((error: unknown) => {
  output.failure('doctor', error, (one) => (one as Error).message);
});
