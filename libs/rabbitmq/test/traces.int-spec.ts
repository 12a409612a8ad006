import type { Channel, ChannelModel } from 'amqplib';
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TracerProvider,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace';
import { Registry } from 'prom-client';
import { openConnection } from '@app/amqp/connection/open-connection';
import { ApiError } from '@app/contracts/error';
import { createTestBroker, type TestBroker } from '@app/testing/broker/broker';
import { eventually } from '@app/testing/eventually';
import { startUsersStub, type UsersHandlers } from '@app/testing/system/users-stub';
import { storedTrace, readTrace } from '@app/tracing/trace-context';
import { activeTrace, useTracing } from '@app/tracing/tracing';
import { EventPublisher } from '../src/events/event.publisher';
import type { RabbitServer } from '../src/server/rabbit.server';
import { declareTopology } from '../src/topology/declare-topology';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT_ID = '00f067aa0ba902b7';
const CALLER = { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`, tracestate: 'vendor=1' };

describe('traces of messages', () => {
  let broker: TestBroker;
  let model: ChannelModel;
  let channel: Channel;
  let server: RabbitServer;
  const handlers = {} as UsersHandlers;
  const metrics = new Registry();
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  const on = (followsCallers: boolean) => useTracing({ tracer: provider.getTracer('test'), followsCallers, samples: () => true });

  beforeAll(async () => {
    broker = await createTestBroker();
    await declareTopology(broker.url);
    model = await openConnection({ url: broker.url, name: 'test' });
    channel = await model.createChannel();
    server = await startUsersStub({ connection: { url: broker.url, name: 'users' }, metrics, maxAttempts: 2 }, handlers);
    await eventually(() => server.check() === undefined);
  });
  afterAll(async () => {
    await server?.close();
    await model?.close();
    await broker?.drop();
  });
  beforeEach(() => {
    on(true);
    exporter.reset();
    handlers.add = () => ({});
  });
  afterEach(() => useTracing(undefined));

  const publish = (headers: Record<string, unknown>) =>
    channel.publish('commands', 'users.add.v1', Buffer.from(JSON.stringify({ organizationId: 'o', users: [{ userId: 'u' }] })), {
      headers: { 'x-api-key': 'key', ...headers },
    });
  const processed = (count: number) =>
    eventually(() => {
      const spans = exporter.getFinishedSpans().filter(({ name }) => name.startsWith('process'));
      return spans.length === count && spans;
    }) as Promise<ReadableSpan[]>;

  it('go on from another publisher, through a retry, to the dead letter', async () => {
    handlers.add = () => {
      throw new ApiError('UNAVAILABLE', 'later');
    };
    publish(CALLER);
    const [first, second] = await processed(2);
    expect(first.parentSpanContext?.spanId).toBe(PARENT_ID);
    expect(second.parentSpanContext?.spanId).toBe(first.spanContext().spanId);
    expect([first, second].map((span) => span.spanContext().traceId)).toEqual([TRACE_ID, TRACE_ID]);
    expect(
      [first, second].map(({ name, attributes }) => [
        name,
        attributes['collaboration.attempt'],
        attributes['collaboration.outcome'],
      ]),
    ).toEqual([
      ['process users.commands.0', 1, 'retried'],
      ['process users.again', 2, 'dead'],
    ]);
    const letter = await eventually(() => channel.get('users.commands.dead', { noAck: true }));
    expect(letter && letter.properties.headers).toMatchObject({
      traceparent: `00-${TRACE_ID}-${second.spanContext().spanId}-01`,
      tracestate: 'vendor=1',
    });
  });

  it('begin anew with a link where a publisher does not decide', async () => {
    on(false);
    publish(CALLER);
    const [span] = await processed(1);
    expect(span.spanContext().traceId).not.toBe(TRACE_ID);
    expect(span.links.map(({ context }) => context.spanId)).toEqual([PARENT_ID]);
  });

  it('have no span of a message that its publisher does not sample, and its context goes on', async () => {
    const seen: unknown[] = [];
    handlers.add = (_, context) => {
      seen.push(context.span?.spanContext().traceId, activeTrace());
      return {};
    };
    publish({ traceparent: CALLER.traceparent.replace(/1$/, '0') });
    await eventually(() => seen.length > 0);
    expect(seen).toEqual([TRACE_ID, null]);
    publish({ traceparent: 'x'.repeat(1000) });
    const [span] = await processed(1);
    expect(span.parentSpanContext).toBeUndefined();
  });

  it('belong to the handler while it runs', async () => {
    const seen: unknown[] = [];
    handlers.add = async (_, context) => {
      await new Promise(setImmediate);
      seen.push(activeTrace(), context.span && storedTrace(context.span.spanContext()));
      return {};
    };
    publish(CALLER);
    await processed(1);
    expect(seen[0]).toMatch(new RegExp(`^00-${TRACE_ID}-.{16}-01 vendor=1$`));
    expect(seen[1]).toBe(seen[0]);
  });

  it('go on to the listeners of events', async () => {
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, 'events', '#');
    const events = new EventPublisher({ connection: { url: broker.url, name: 'users' }, service: 'users', metrics });
    events.start();
    await eventually(() => events.check() === undefined);
    const event = {
      id: 'event-1',
      type: 'user.added.v1',
      apiKey: 'key',
      organizationId: 'o',
      occurredAt: new Date(),
      data: '{}',
    };
    await events.publish([{ ...event, trace: storedTrace(readTrace(CALLER.traceparent, CALLER.tracestate)!) }]);
    await events.publish([{ ...event, id: 'event-2' }]);
    const [own, others] = exporter.getFinishedSpans();
    expect([own, others].map(({ name }) => name)).toEqual(['publish events.own:user.added.v1', 'publish events:user.added.v1']);
    const received = await channel.get(queue, { noAck: true });
    expect(received && received.properties.headers).toMatchObject({
      traceparent: `00-${TRACE_ID}-${others.spanContext().spanId}-01`,
      tracestate: 'vendor=1',
    });
    const untraced = await channel.get(queue, { noAck: true });
    expect(untraced && untraced.properties.headers).toEqual({ 'x-api-key': 'key' });
    await events.close();
  });
});
