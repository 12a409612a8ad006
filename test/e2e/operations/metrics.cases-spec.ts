import { readFileSync } from 'node:fs';
import { connect } from 'amqplib';
import { eventually } from '@app/testing/eventually';
import type { AppName } from '@app/testing/system/service-process';
import type { System } from '@app/testing/system/system';

const APPS: readonly AppName[] = ['gateway', 'users', 'notifications'];
/** A name that only a caller knows. */
const MADE_UP = 'made-up-by-a-caller';

/** Metric names with their processes, as docs/metrics.md says. */
function documented(): Map<string, readonly string[]> {
  const rows = readFileSync('docs/metrics.md', 'utf8').matchAll(/^\| `(\w+)` \|(.*)\|$/gm);
  return new Map(
    [...rows].map(([, name = '', rest = '']) => {
      // Node's own metrics have no column for the process.
      const processes = /^(nodejs|process)_/.test(name) ? 'all' : (rest.split('|').at(-1)?.trim() ?? '');
      return [name, processes === 'all' ? APPS : processes.split(', ')];
    }),
  );
}

const familiesOf = (text: string) => [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name);
const valueOf = (text: string, series: string) =>
  Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length),
  );

/** To be called last: it reads what the other cases have caused. */
export const metricsOfProcesses = (system: () => System): void =>
  describe('the metrics', () => {
    const scrape = (app: AppName) => system().services[app].metrics();

    it('are those of docs/metrics.md, in each process', async () => {
      const said = documented();
      for (const app of APPS) {
        const expected = [...said].filter(([, processes]) => processes.includes(app)).map(([name]) => name);
        expect(familiesOf(await scrape(app)).sort()).toEqual(expected.sort());
      }
    });

    it('have the length of each queue, its consumers, and the limit of both its messages and its deliveries', async () => {
      // A broker that takes over a second to answer is in the next figures, and events of earlier cases may be on their way.
      await eventually(async () => {
        const text = await scrape('notifications');
        for (const queue of ['notifications.calls', 'notifications.commands.0', 'notifications.events']) {
          expect(valueOf(text, `queue_messages{queue="${queue}"}`)).toBe(0);
          expect(valueOf(text, `queue_consumers{queue="${queue}"}`)).toBe(1);
          expect(valueOf(text, `queue_messages_limit{queue="${queue}"}`)).toBeGreaterThan(1000);
          expect(valueOf(text, `rabbitmq_prefetch{queue="${queue}"}`)).toBeGreaterThan(0);
        }
        expect(valueOf(text, 'queue_consumers{queue="notifications.commands.dead"}')).toBe(0);
        return true;
      });
    });

    it('have the use of the pool, durations of deliveries, hits of caches and the lag of the copy', async () => {
      const text = await scrape('notifications');
      expect(valueOf(text, 'database_pool_connections_limit')).toBe(10);
      expect(valueOf(text, 'database_pool_connections{state="idle"}')).toBeGreaterThan(0);
      expect(valueOf(text, 'rabbitmq_delivery_seconds_count{pattern="notifications.add.v1"}')).toBeGreaterThan(0);
      expect(valueOf(text, 'cache_lookups_total{cache="tenants",result="hit"}')).toBeGreaterThan(0);
      expect(valueOf(text, 'copy_lag_seconds_count{type="user.added.v1"}')).toBeGreaterThan(0);
      expect(valueOf(text, 'rabbitmq_deliveries_running_limit{kind="commands"}')).toBe(256);
      expect(text).toMatch(/^build_info\{service="notifications",version="\d+\.\d+\.\d+"\} 1$/m);
    });

    it('have the status of each error, and no label that a caller has made up', async () => {
      const { amqpUrl, services } = system();
      const { status } = await system().post(MADE_UP, '{}');
      expect(status).toBe(404);
      const connection = await connect(amqpUrl);
      const channel = await connection.createConfirmChannel();
      channel.sendToQueue('notifications.commands.0', Buffer.from('{}'), {
        type: MADE_UP,
        appId: MADE_UP,
        messageId: MADE_UP,
        headers: { 'x-api-key': MADE_UP, [MADE_UP]: MADE_UP },
      });
      await channel.waitForConfirms();
      await connection.close();
      await eventually(async () => (await scrape('notifications')).includes('{pattern="unknown",outcome="refused"'));
      expect(
        valueOf(await services.gateway.metrics(), 'gateway_errors_total{route="unknown",error="NOT_FOUND"}'),
      ).toBeGreaterThan(0);
      for (const app of APPS) expect(await scrape(app)).not.toContain(MADE_UP);
    });
  });
