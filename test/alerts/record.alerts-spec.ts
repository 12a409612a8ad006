import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { metricNamesOf } from '@app/testing/promql';
import { Cluster } from '../faults/harness/cluster';
import { Random, seedOfRun } from '../faults/harness/random';
import { Load } from './load';
import { MINUTES, Recording, STEP_S, type Target } from './recording';
import { SITUATIONS, type Situation, type Stage } from './situations';

const FOLDER = 'deploy/observability';
const READINGS = 6;

interface Rule {
  record?: string;
  alert?: string;
  expr: string;
}

const { groups } = parse(readFileSync(join(FOLDER, 'rules.yml'), 'utf8')) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** Metrics that alerts name, also through a recording rule. */
function metricsOfAlerts(): Set<string> {
  const names = new Set(rules.filter(({ alert }) => alert).flatMap(({ expr }) => metricNamesOf(expr)));
  for (const name of names)
    for (const { record, expr } of rules) if (record === name) for (const one of metricNamesOf(expr)) names.add(one);
  return names;
}

const firing = (alerts: string[], time: number) => ({
  expr: `group by (alertname) (ALERTS{alertstate="firing"${alerts.length > 0 ? `,alertname=~"${alerts.join('|')}"` : ''}})`,
  eval_time: `${time}m`,
  exp_samples: alerts.map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
});

/** Slow calls may come with a fault, on a busy machine. Nobody may be woken for what is not the fault. */
const noOther = (alerts: string[], time: number) => ({
  expr: `group by (alertname) (ALERTS{alertstate="firing",severity="critical",alertname!~"${alerts.join('|')}"})`,
  eval_time: `${time}m`,
  exp_samples: [],
});

function testOf({ name, alerts }: Situation, recording: Recording): string {
  const { quiet, fault, after } = MINUTES;
  const test = {
    rule_files: ['../rules.yml'],
    evaluation_interval: `${STEP_S}s`,
    tests: [
      {
        name,
        interval: `${STEP_S}s`,
        input_series: recording.series(),
        promql_expr_test: [
          firing([], quiet - 1),
          firing([...alerts].sort(), quiet + fault - 1),
          noOther([...alerts].sort(), quiet + fault - 1),
          firing([], quiet + fault + after - 1),
        ],
      },
    ],
  };
  const head = `Recorded by npm run alerts -- --record from a real system with this fault: ${quiet} minutes before it, ${fault} with it, ${after} after it.`;
  return `# ${head}\n${stringify(test, { lineWidth: 0 })}`;
}

describe('the alerts', () => {
  let cluster: Cluster;
  let load: Load;

  beforeAll(async () => {
    const poison = `--require "${join(process.cwd(), 'test/faults/harness/poison.cjs')}"`;
    const env = { gateway: { MAX_IN_FLIGHT: '40' }, notifications: { NODE_OPTIONS: poison } };
    cluster = await Cluster.start(new Random(seedOfRun()), { writers: 1, env });
    load = new Load(cluster);
  });
  afterAll(async () => {
    await load?.stop();
    await cluster?.remove();
  });

  const usualTargets = (): Target[] => [
    { job: 'gateway', instance: 'gateway-1', process: cluster.gateway.process },
    { job: 'users', instance: 'users-1', process: cluster.users.process },
    { job: 'notifications', instance: 'notifications-1', process: cluster.writers[0].process },
  ];

  it.each(SITUATIONS.map((situation) => [situation.name, situation] as const))(
    '%s',
    async (name, situation) => {
      const stage: Stage = {
        cluster,
        load,
        targets: usualTargets(),
        async replaceWriter(env) {
          const [writer] = cluster.writers;
          await cluster.addWriter(new Random(1), env);
          const replacement = cluster.writers.pop()!;
          await replacement.process.start();
          await writer.process.stop();
          stage.targets = [
            ...usualTargets().slice(0, 2),
            { job: 'notifications', instance: 'notifications-2', process: replacement.process },
          ];
          return async () => {
            await writer.process.start();
            await replacement.process.stop();
            await Promise.all([replacement.toBroker.close(), replacement.toDatabase?.close()]);
            stage.targets = usualTargets();
          };
        },
      };
      await load.calm();
      const recording = new Recording(metricsOfAlerts());
      await recording.record('quiet', () => stage.targets, READINGS, 2);
      const end = await situation.begin(stage);
      await recording.record('fault', () => stage.targets, situation.readings ?? READINGS, situation.everySeconds ?? 2);
      await end();
      await Promise.all(cluster.nodes.map(({ process }) => process.untilReady()));
      await load.calm();
      await recording.record('after', () => stage.targets, READINGS, 2);
      writeFileSync(join(FOLDER, 'tests', `${name}.yml`), testOf(situation, recording));
    },
    480_000,
  );
});
