// npm run alerts: whether the rules for Prometheus are right, on recordings of a system with each fault. --record makes these anew, --panels asks a
// Prometheus that reads a running system for every panel of the dashboards.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError, commandLine } from './processes/command-line.mjs';
import { endCommands } from './processes/command.mjs';
import { runJest } from './checkout/jest.mjs';
import { UserError } from './checkout/machine.mjs';
import { watchParent } from './processes/parent.mjs';
import { prepare } from './checkout/prepare.mjs';
import { report, reportFailure } from './checkout/progress.mjs';
import { ROOT } from './checkout/project.mjs';
import { prometheusRules } from './docs/prometheus-rule.mjs';
import { needPrometheus } from './servers/prometheus.mjs';
import { temporaryDirectory } from './processes/temporary-directory.mjs';

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
let leaving = false;

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => leave(130));
watchParent(() => leave(1));

try {
  if (record) {
    await prepare();
    const failed = await failuresOf('record', ...(names.length > 0 ? ['-t', names.join('|')] : []));
    if (failed > 0) throw new UserError(`${failed} faults could not be recorded.`);
  }
  await needPrometheus(report);
  const tests = readdirSync(join(FOLDER, 'tests')).map((file) => join(FOLDER, 'tests', file));
  promtool('check', 'rules', '--lint=all', '--lint-fatal', join(FOLDER, 'rules.yml'));
  promtool('check', 'rules', '--lint=none', panelsAsRules());
  promtool('check', 'config', join(FOLDER, 'prometheus.yml'));
  promtool('test', 'rules', ...tests, linkTest(), backOffTest(), unseenTest(), silentLeaderTest());
  report('ok      the rules for Prometheus');
  if (panels) {
    await prepare();
    const failed = await failuresOf('panels');
    if (failed > 0) throw new UserError(`${failed} dashboards show no data in a panel.`);
    report('ok      every panel of the dashboards has data');
  }
  leave(0);
} catch (error) {
  if (!leaving) reportFailure(error);
  leave(1);
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

/** Whether an alert links to the runbooks at the address in the external label. @returns the file of the test */
function linkTest() {
  const runbooks = 'https://git.example.com/docs/runbooks';
  const up = ['users', 'notifications'].map((job) => ({ series: `up{job="${job}"}`, values: '1x20' }));
  const missing = prometheusRules().groups.flatMap(({ rules }) => rules.find(({ alert }) => alert === 'ServiceMissing') ?? [])[0];
  const exp_annotations = {
    ...missing.annotations,
    summary: 'No process of gateway answers.',
    runbook_url: `${runbooks}/ServiceMissing.md`,
  };
  const test = {
    external_labels: { runbooks },
    input_series: up,
    alert_rule_test: [
      {
        eval_time: '3m',
        alertname: 'ServiceMissing',
        exp_alerts: [{ exp_labels: { job: 'gateway', ...missing.labels }, exp_annotations }],
      },
    ],
  };
  return ruleTest('link', [test]);
}

/**
 * Whether the alert stays while a process ends a minute after each start, and a platform waits longer and longer before the next one, at last five
 * minutes. @returns the file of the test
 */
function backOffTest() {
  const waits = [1, 1, 2, 3, 5, 10, ...Array(15).fill(20)];
  const starts = waits.map((wait, start) => `${start}+0x3 _x${wait}`);
  const test = {
    input_series: [{ series: 'process_start_time_seconds{job="users",instance="users-1"}', values: starts.join(' ') }],
    promql_expr_test: Array.from({ length: 80 }, (_, minute) => ({
      expr: 'group by (alertname) (ALERTS{alertname="ProcessRestarting",alertstate="firing"})',
      eval_time: `${minute + 10}m`,
      exp_samples: [{ labels: '{alertname="ProcessRestarting"}', value: 1 }],
    })),
  };
  return ruleTest('back-off', [test]);
}

/**
 * Whether the alert fires for one process of two that ends before its metrics are read, and not for one that has been replaced, is new, or has been
 * away for a moment. @returns the file of the test
 */
function unseenTest() {
  const up = (/** @type {string} */ instance, /** @type {string} */ values) => ({
    series: `up{job="users",instance="${instance}"}`,
    values,
  });
  const firing = (/** @type {number} */ minute, /** @type {boolean} */ isExpected) => ({
    expr: 'group by (alertname) (ALERTS{alertname="ProcessRestarting",alertstate="firing"})',
    eval_time: `${minute}m`,
    exp_samples: isExpected ? [{ labels: '{alertname="ProcessRestarting"}', value: 1 }] : [],
  });
  const quiet = Array.from({ length: 60 }, (_, minute) => firing(minute, false));
  return ruleTest('unseen', [
    {
      // A process that lives for a moment once in five minutes, and is mended after an hour.
      input_series: [up('users-1', '1+0x320'), up('users-2', `${'0+0x15 1+0x0 0+0x2 '.repeat(12)} 1+0x80`)],
      promql_expr_test: [
        ...Array.from({ length: 45 }, (_, minute) => firing(minute + 12, true)),
        ...[64, 70, 78].map((minute) => firing(minute, false)),
      ],
    },
    {
      input_series: [up('users-1', '1+0x240'), up('users-2', '1+0x60 0+0x1 _x180'), up('users-3', '_x60 0+0x3 1+0x180')],
      promql_expr_test: quiet,
    },
    { input_series: [up('users-1', '1+0x240'), up('users-2', '1+0x60 0+0x16 1+0x180')], promql_expr_test: quiet },
    // All of them: ServiceMissing.
    { input_series: [up('users-1', '0+0x240'), up('users-2', '0+0x240')], promql_expr_test: quiet },
  ]);
}

/** Whether the alert of letters stays while the broker says now and then that there are none. @returns the file of the test */
function silentLeaderTest() {
  const alert = { alertname: 'DeadLetters', alertstate: 'firing' };
  const selector = Object.entries(alert).map(([label, value]) => `${label}="${value}"`);
  const firing = (/** @type {number} */ minute, /** @type {number} */ value) => ({
    expr: `group by (alertname) (ALERTS{${selector}})`,
    eval_time: `${minute}m`,
    exp_samples: value ? [{ labels: '{alertname="DeadLetters"}', value }] : [],
  });
  const series = 'queue_messages{job="users",instance="users-1",queue="users.commands.dead"}';
  const input_series = [{ series, values: `0+0x20 ${'7 0 7 0 0 7 '.repeat(10)} 0+0x60` }];
  const during = Array.from({ length: 14 }, (_, minute) => firing(minute + 6, 1));
  return ruleTest('silent-leader', [{ input_series, promql_expr_test: [firing(4, 0), ...during, firing(27, 0)] }]);
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

/** @param {number} code */
function leave(code) {
  if (leaving) return;
  leaving = true;
  endCommands();
  reports.remove();
  process.exit(code);
}
