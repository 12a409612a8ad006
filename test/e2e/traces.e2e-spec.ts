import { randomBytes } from 'node:crypto';
import { connect, type ChannelModel } from 'amqplib';
import { CollaborationClient } from '@app/client/client';
import { eventually } from '@app/testing/eventually';
import { OtlpReceiver } from '@app/testing/otlp-receiver';
import type { ReceivedSpan } from '@app/testing/otlp-span';
import type { ServiceProcess } from '@app/testing/system/service-process';
import { System } from '@app/testing/system/system';

const newTrace = (sampled = true) => {
  const traceId = randomBytes(16).toString('hex');
  return { traceId, traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-0${Number(sampled)}` };
};

const notification = (documentId: string) => ({
  organizationId: 'secret-org',
  documentId,
  actionUser: { userId: 'secret-user' },
  notifyUsers: [{ userId: 'secret-reader' }],
  displayHeadlineMessageTemplate: 'secret text',
});

/** Of one call. docs/tracing.md shows it. */
const TREE = `
POST /v1/notifications/add (gateway)
  call calls:notifications.add.v1 (gateway)
    process notifications.calls (notifications)
      publish events:notification.added.v1 (notifications)
      store notifications (notifications)
        insert-notifications (notifications)`;

describe('traces', () => {
  let receiver: OtlpReceiver;
  let system: System;
  let model: ChannelModel;
  let client: CollaborationClient;
  const replicas: ServiceProcess[] = [];
  beforeAll(async () => {
    receiver = await OtlpReceiver.start();
    system = await System.start({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json', LOG_LEVEL: 'debug' },
    });
    model = await connect(system.amqpUrl);
    client = new CollaborationClient({ url: system.amqpUrl, name: 'billing', apiKey: 'demo-key' });
    // Tenant and credentials are known from here on.
    expect((await system.call('notifications/add', notification('first'))).status).toBe(200);
  });
  afterAll(async () => {
    await Promise.all(replicas.map((one) => one.stop('SIGKILL')));
    await client?.close();
    await model?.close();
    await system?.stop();
    await receiver?.stop();
  });

  const received = (traceId: string, ...names: string[]) =>
    eventually(() => {
      const spans = receiver.of(traceId);
      return names.every((name) => spans.some((span) => span.name === name)) && spans;
    }) as Promise<ReceivedSpan[]>;
  /** Waits for the last span: each process sends its own. */
  const hasTree = (traceId: string, tree: readonly string[]) =>
    eventually(() => {
      expect(receiver.tree(traceId)).toEqual(tree);
      return true;
    });
  const replica = async (env: Record<string, string>) => {
    const one = system.replica('gateway', env);
    replicas.push(one);
    return one.start();
  };

  it('have one tree from HTTP through the broker to SQL and the event, without data of the caller', async () => {
    const { traceId, traceparent } = newTrace();
    const { body } = await system.call('notifications/add', notification('tree'), { traceparent, tracestate: 'vendor=1' });
    expect(body.result).toBeDefined();
    await hasTree(traceId, TREE.trim().split('\n'));
    const spans = receiver.of(traceId);
    expect(Object.fromEntries(spans.map(({ name, kind }) => [name.split(' ')[0], kind]))).toEqual({
      POST: 2,
      call: 4,
      process: 5,
      store: 1,
      'insert-notifications': 3,
      publish: 4,
    });
    expect(spans.find(({ kind }) => kind === 2)?.attributes).toEqual({
      'http.request.method': 'POST',
      'http.route': '/v1/notifications/add',
      'http.response.status_code': 200,
      'network.protocol.version': '1.1',
      'url.path': '/v1/notifications/add',
      'url.scheme': 'http',
    });
    expect(spans.find(({ kind }) => kind === 5)?.attributes).toMatchObject({
      'messaging.system': 'rabbitmq',
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'calls:notifications.add.v1:notifications.calls',
      'collaboration.outcome': 'replied',
    });
    expect(spans.find(({ kind }) => kind === 3)?.attributes).toMatchObject({
      'db.system.name': 'postgresql',
      'db.query.summary': 'insert-notifications',
    });
    expect(JSON.stringify(receiver.spans)).not.toMatch(/secret|demo-key|demo-token/);
  });

  it('are in the log', async () => {
    const { traceId, traceparent } = newTrace();
    await system.call('notifications/add', notification('log'), { traceparent });
    for (const app of ['gateway', 'notifications'] as const)
      await eventually(() => system.services[app].output.some((line) => line.includes(`"trace_id":"${traceId}"`)));
  });

  it('link a message and a batch with the spans of all their members', async () => {
    const of = (prefix: string) => receiver.spans.filter(({ name, links }) => name.startsWith(prefix) && links.length > 1);
    // Commands share a message when they come at the same time.
    await eventually(async () => {
      await Promise.all(Array.from({ length: 64 }, () => system.call('notifications/add', notification('batch'))));
      return of('publish calls').length > 0 && of('store').length > 0;
    });
    // Spans of the members come with a later export.
    const { traceId, traceparent } = newTrace();
    await system.call('notifications/add', notification('after'), { traceparent });
    await received(traceId, 'POST /v1/notifications/add', 'process notifications.calls');
    const members = (prefix: string) => receiver.spans.filter(({ name }) => name.startsWith(prefix)).map(({ spanId }) => spanId);
    const [message] = of('publish calls');
    expect(message.attributes['messaging.batch.message_count']).toBe(message.links.length);
    expect(members('call calls:notifications.add.v1')).toEqual(expect.arrayContaining([...message.links]));
    const [batch] = of('store');
    expect(members('process notifications.calls')).toEqual(expect.arrayContaining([...batch.links]));
    const last = receiver.spans.find(({ spanId }) => spanId === batch.links.at(-1));
    expect(last?.links).toEqual([batch.spanId]);
  });

  it('go on from another publisher, through the outbox, to its listeners', async () => {
    const channel = await model.createChannel();
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'events', 'user.added.v1');
    const { traceId, traceparent } = newTrace();
    const body = { organizationId: 'secret-org', users: [{ userId: 'secret-user' }] };
    await client.publish('users.add.v1', body, { traceparent });
    await hasTree(traceId, [
      'process users.commands.0 (users)',
      '  add-organization-members (users)',
      '  publish events.own:user.added.v1 (users)',
      '    process notifications.events (notifications)',
      '      copy-members (notifications)',
      '  publish events:organization.created.v1 (users)',
      '  publish events:user.added.v1 (users)',
    ]);
    const event = await channel.get(queue, { noAck: true });
    const parent = receiver.of(traceId).find(({ name }) => name === 'publish events:user.added.v1');
    expect(event && event.properties.headers?.traceparent).toBe(`00-${traceId}-${parent?.spanId}-01`);
    await channel.close();
  });

  it('have no span of a call that its caller does not sample', async () => {
    const [unsampled, sampled] = [newTrace(false), newTrace()];
    for (const { traceparent } of [unsampled, sampled])
      await system.call('notifications/add', notification('off'), { traceparent });
    await received(sampled.traceId, 'publish events:notification.added.v1');
    expect(receiver.of(unsampled.traceId)).toEqual([]);
  });

  it('obey protocol, headers, name and sampler', async () => {
    const gateway = await replica({
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20token',
      OTEL_SERVICE_NAME: 'edge',
      OTEL_TRACES_SAMPLER: 'always_on',
    });
    const { traceId, traceparent } = newTrace(false);
    await system.call('notifications/add', notification('protobuf'), { traceparent }, gateway.url);
    const [root] = (await eventually(() => {
      const spans = receiver.spans.filter(({ service, kind }) => service === 'edge' && kind === 2);
      return spans.length > 0 && spans;
    })) as ReceivedSpan[];
    // A sampler without parent decides alone, about a trace of its own.
    expect(root.traceId).not.toBe(traceId);
    await received(root.traceId, 'process notifications.calls');
    expect([...receiver.contentTypes].sort()).toEqual(['application/json', 'application/x-protobuf']);
    expect(receiver.headers.some(({ authorization }) => authorization === 'Bearer token')).toBe(true);
  });

  it('cost no call when the receiver is away', async () => {
    const gateway = await replica({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => system.call('notifications/add', notification('away'), {}, gateway.url)),
    );
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    await eventually(async () => /^trace_spans_ended_total [1-9]/m.test(await gateway.metrics()));
    expect(await gateway.metrics()).toMatch(/^trace_spans_exported_total 0$/m);
    expect(await gateway.stop()).toBe(0);
  });
});
