import { ALL_MESSAGES, OPEN_MESSAGES } from '@app/contracts/all-messages';
import { BINDINGS, EXCHANGES, LANES, QUEUES, RETRY_DELAYS, SERVICES, type QueueDeclaration } from './topology';

const queue = (name: string) => QUEUES.find((one) => one.name === name);

describe('topology', () => {
  it('binds every message by its own routing key, and nothing by a wildcard', () => {
    const keysAt = (wanted: string) =>
      BINDINGS.flatMap(({ exchange, routingKey }) => (exchange === wanted ? routingKey : [])).sort();
    const all = ALL_MESSAGES.map(({ pattern }) => pattern).sort();
    const open = OPEN_MESSAGES.map(({ pattern }) => pattern).sort();
    expect(['calls', ...LANES].map(keysAt)).toEqual([all, all, open, open, open]);
    for (const { routingKey } of BINDINGS) expect(routingKey).not.toMatch(/[*#]/);
  });

  it('binds and dead-letters only to queues and exchanges that it declares', () => {
    const exchanges = EXCHANGES.map(({ name }) => name as string);
    for (const binding of BINDINGS) {
      expect(queue(binding.queue)).toBeDefined();
      expect(exchanges).toContain(binding.exchange);
    }
    for (const { arguments: args } of QUEUES) {
      if (args['x-dead-letter-exchange'] !== undefined) expect(exchanges).toContain(args['x-dead-letter-exchange']);
    }
  });

  /** Bindings that the dead letters of a queue match. */
  const targetsOf = ({ arguments: args }: QueueDeclaration) =>
    BINDINGS.filter(
      ({ exchange, routingKey }) =>
        exchange === args['x-dead-letter-exchange'] && routingKey === args['x-dead-letter-routing-key'],
    );
  const forwarding = QUEUES.filter(({ arguments: args }) => args['x-dead-letter-exchange'] !== undefined);

  it('routes every dead letter to a queue', () => {
    expect(forwarding).toHaveLength(2 * (RETRY_DELAYS.length + 2) + 1);
    for (const queue of forwarding) expect(targetsOf(queue)).not.toEqual([]);
  });

  it('dead-letters from no queue that other services can publish to: the broker parses their x-death header', () => {
    const lanes: string[] = [...LANES];
    for (const { exchange, queue: name } of BINDINGS) {
      if (!lanes.includes(exchange)) continue;
      expect([name, queue(name)?.arguments['x-dead-letter-exchange']]).toEqual([name, undefined]);
    }
  });

  it('bounds every queue', () => {
    for (const { arguments: args } of QUEUES) {
      expect(args).toMatchObject({
        'x-queue-type': expect.stringMatching(/^(quorum|classic)$/) as string,
        'x-max-length': expect.any(Number) as number,
        'x-max-length-bytes': expect.any(Number) as number,
        'x-overflow': expect.stringMatching(/^(reject-publish|drop-head)$/) as string,
      });
    }
  });

  it('drops only dead letters that their publisher caused, and checks', () => {
    const dropping = QUEUES.filter(({ arguments: args }) => args['x-overflow'] === 'drop-head').map(({ name }) => name);
    expect(dropping).toEqual([...SERVICES.map((service) => `${service}.commands.refused`), 'quorum.check']);
  });

  it('loses nothing while dead-lettering, and no target refuses before its sources are full', () => {
    for (const source of forwarding) {
      expect(source.arguments).toMatchObject({ 'x-queue-type': 'quorum', 'x-dead-letter-strategy': 'at-least-once' });
      for (const target of targetsOf(source)) {
        const { arguments: args } = queue(target.queue)!;
        if (args['x-overflow'] === 'drop-head') continue;
        const sources = forwarding.filter((one) => targetsOf(one).some((binding) => binding.queue === target.queue));
        for (const limit of ['x-max-length', 'x-max-length-bytes'])
          expect(args[limit]).toBeGreaterThanOrEqual(2 * sources.reduce((sum, one) => sum + Number(one.arguments[limit]), 0));
      }
    }
  });

  it('has one delay for each retry queue', () => {
    expect(RETRY_DELAYS.map(({ name }) => queue(`users.retry.${name}`)?.arguments['x-message-ttl'])).toEqual([
      1000, 5000, 30_000, 300_000,
    ]);
  });
});
