import { measuresOf, operationsOf, queuesOf, tenantsOf } from './measures';
import type { WatchedProcess } from './process';
import { readingOf } from './reading';

/** A process that said these two things, 10 s apart. */
function watched(address: string, before: string, now: string, tenants: [string, number][] = []): WatchedProcess {
  const [first, last] = [readingOf(before, 0), readingOf(now, 10_000)];
  return { address, service: last.service, before: first, now: last, tenants } as unknown as WatchedProcess;
}

const gateway = (calls: number, failed: number, refused: number) => `
build_info{service="gateway",version="1.2.3"} 1
http_request_seconds_count{route="/v1/users/add",status="200"} ${calls}
http_request_seconds_count{route="/v1/users/add",status="503"} ${failed}
http_request_seconds_count{route="/v1/users/get",status="400"} ${refused}
http_request_seconds_bucket{le="0.1",route="/v1/users/add",status="200"} ${calls}
http_request_seconds_bucket{le="+Inf",route="/v1/users/add",status="200"} ${calls}
http_request_seconds_count{route="/v1/users/get",status="499"} ${refused}
http_request_seconds_count{route="/health/ready",status="503"} ${calls}
http_request_seconds_bucket{le="0.1",route="/health/ready",status="503"} 0
http_request_seconds_bucket{le="+Inf",route="/health/ready",status="503"} ${calls}
http_request_seconds_count{route="unknown",status="404"} ${calls}
gateway_rate_limited_total{limit="rate"} ${refused}
process_cpu_seconds_total ${calls / 100}
`;
const writer = (deliveries: number, dead: number, outbox: number) => `
build_info{service="notifications",version="1.2.3"} 1
rabbitmq_deliveries_total{pattern="notifications.add.v1",outcome="replied",status=""} ${deliveries}
rabbitmq_deliveries_total{pattern="notifications.add.v1",outcome="dead",status="NOT_FOUND"} ${dead}
rabbitmq_command_age_seconds_count{queue="notifications.calls"} ${deliveries}
rabbitmq_command_age_seconds_bucket{le="2",queue="notifications.calls"} ${deliveries}
queue_messages{queue="notifications.calls"} 7
queue_consumers{queue="notifications.calls"} 2
queue_messages_limit{queue="notifications.calls"} 100
rabbitmq_prefetch{queue="notifications.calls"} 32
notification_writer_waiting 3
notification_batch_size_sum ${deliveries}
notification_batch_size_count ${deliveries / 10}
outbox_events ${outbox}
outbox_published_total ${deliveries}
`;

it('adds up the processes of a service, from the differences of their counters', () => {
  const two = [watched('a', gateway(0, 0, 0), gateway(100, 10, 5)), watched('b', gateway(50, 0, 0), gateway(150, 0, 0))];
  const measures = measuresOf(two);
  expect(Object.fromEntries(measures)).toMatchObject({
    'gateway rate': 22,
    'gateway failed': 1,
    'gateway refused': 1,
    'gateway p99': 0.099,
    'process a rate': 12,
    'process b cpu': 0.1,
  });
  expect(operationsOf(two, 'gateway').map(({ name, rate, failed }) => [name, rate, failed])).toEqual([
    ['/v1/users/add', 21, 1],
    ['/v1/users/get', 1, 0],
  ]);
});

it('takes what all processes say of one queue and one table once', () => {
  const two = [watched('a', writer(0, 0, 5), writer(100, 20, 5)), watched('b', writer(0, 0, 5), writer(100, 0, 5))];
  expect(Object.fromEntries(measuresOf(two))).toMatchObject({
    'notifications rate': 22,
    'notifications failed': 2,
    'writer notifications': 20,
    'writer size': 10,
    'writer waiting': 6,
    'outbox notifications events': 5,
    'outbox notifications published': 20,
    'queue notifications.calls messages': 7,
  });
  const [queue] = queuesOf(two);
  expect(queue).toMatchObject({ name: 'notifications.calls', messages: 7, consumers: 2, limit: 100 });
  expect(queue?.age).toBeCloseTo(1.98);
});

it.each(['dead', 'suspect', 'again', 'crashed', 'reply_lost'])('counts a delivery with the outcome %s as failed', (outcome) => {
  const text = (count: number) =>
    writer(0, count, 0).replace('outcome="dead",status="NOT_FOUND"', `outcome="${outcome}",status=""`);
  expect(measuresOf([watched('a', text(0), text(20))]).get('notifications failed')).toBe(2);
});

it('takes no reader of notifications for a writer', () => {
  expect(readingOf(writer(1, 0, 0), 0).writer).toMatchObject({ waiting: 3 });
  expect(readingOf(writer(1, 0, 0).replace('.calls"} 32', '.calls.queries"} 256'), 0).writer).toBeUndefined();
});

it('has no rate from one reading, and the busiest 20 tenants of all gateways', () => {
  const [text] = [gateway(1, 1, 1)];
  const fresh = { ...watched('a', text, text), before: undefined } as unknown as WatchedProcess;
  expect([...measuresOf([fresh])]).toEqual([]);
  const tenants = Array.from({ length: 30 }, (_, index): [string, number] => [`key_${index}`, index]);
  const both = tenantsOf([watched('a', text, text, tenants), watched('b', text, text, tenants)]);
  expect([both.length, both[0], both[19]]).toEqual([20, ['key_29', 58], ['key_10', 20]]);
});
