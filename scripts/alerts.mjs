// npm run alerts: whether the rules for Prometheus are right, on recordings of a system with each fault. --record makes these anew, --panels asks a
// Prometheus that reads a running system for every panel of the dashboards.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError, commandLine } from './processes/command-line.mjs';
import { runJest } from './checkout/jest.mjs';
import { UserError } from './checkout/machine.mjs';
import { runToEnd } from './checkout/run-to-end.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report } from './checkout/progress.mjs';
import { ROOT } from './checkout/project.mjs';
import { needPrometheus } from './servers/prometheus.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';
import { ruleTests } from '../test/alerts/rule-tests.mjs';

const FOLDER = join(ROOT, 'deploy/observability');

const { record, panels, names } = commandLine(
  {
    command: 'npm run alerts --',
    about: 'Checks the rules for Prometheus with promtool, and that each alert fires on its fault, and on no quiet system.',
    words: { name: 'FAULT', help: 'with --record: only the faults whose name contains it' },
    options: {
      record: { help: 'first causes the faults on a system of its own, and records its metrics' },
      panels: { help: 'also asks a real Prometheus that reads a real system for every panel of the dashboards' },
    },
    notes: ['promtool is in the package prometheus of Debian. As root it is installed when it is missing.'],
    examples: {
      '': 'the check, in seconds',
      '--record': 'after a change of rules or metrics, in some minutes',
      '--record gone': 'two of them',
      '--panels': 'after a change of dashboards, in two minutes',
    },
  },
  ({ words, values }) => {
    if (words.length > 0 && !values.record) throw new UsageError('FAULT is for --record only.');
    return { record: values.record, panels: values.panels, names: words };
  },
);
const reports = temporaryDirectory('alerts');
await runToEnd(main, () => reports.remove());

async function main() {
  if (record) {
    await prepare();
    const failed = await failuresOf('record', ...(names.length > 0 ? ['-t', names.join('|')] : []));
    if (failed > 0) throw new UserError(`Faults that could not be recorded: ${failed}.`);
  }
  await needPrometheus(report);
  const tests = readdirSync(join(FOLDER, 'tests')).map((file) => join(FOLDER, 'tests', file));
  promtool('check', 'rules', '--lint=all', '--lint-fatal', join(FOLDER, 'rules.yml'));
  promtool('check', 'rules', '--lint=none', panelsAsRules());
  promtool('check', 'config', join(FOLDER, 'prometheus.yml'));
  const made = Object.entries(ruleTests()).map(([name, rules]) => ruleTest(name, rules));
  promtool('test', 'rules', ...tests, ...made);
  report('ok      the rules for Prometheus');
  if (panels) {
    await prepare();
    const failed = await failuresOf('panels');
    if (failed > 0) throw new UserError(`Dashboards with a panel without data: ${failed}.`);
    report('ok      every panel of the dashboards has data');
  }
}

/** @param {string} file beginning of its name @param {string[]} args of Jest @returns number of tests that failed */
async function failuresOf(file, ...args) {
  const chosen = ['--selectProjects', 'alerts', '--runInBand', '--testPathPatterns', `test/alerts/${file}`];
  return (await runJest([...chosen, ...args], {}, join(reports.path, 'report.json'))).failed;
}

/** promtool reads only rules: each expression of a panel becomes one. @returns the file */
function panelsAsRules() {
  const files = readdirSync(join(FOLDER, 'dashboards')).map((file) => readFileSync(join(FOLDER, 'dashboards', file), 'utf8'));
  const expressions = files.flatMap((text) =>
    JSON.parse(text).panels.flatMap((/** @type {any} */ { targets }) => targets.map((/** @type {any} */ { expr }) => expr)),
  );
  const rules = expressions.map((expr, index) => ({ record: `panel_${index}`, expr }));
  const file = join(reports.path, 'panels.yml');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }));
  return file;
}

/** @param {string} name @param {object[]} tests of promtool @returns the file */
function ruleTest(name, tests) {
  const file = join(reports.path, `${name}.yml`);
  const whole = {
    rule_files: [join(FOLDER, 'rules.yml')],
    evaluation_interval: '15s',
    tests: tests.map((test) => ({ interval: '15s', ...test })),
  };
  writeFileSync(file, JSON.stringify(whole));
  return file;
}

/** @param {string[]} args */
function promtool(...args) {
  const { status } = spawnSync('promtool', args, { stdio: 'inherit' });
  if (status !== 0) throw new UserError(`promtool ${args.slice(0, 2).join(' ')} failed.`);
}
