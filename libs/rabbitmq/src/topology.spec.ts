import { ALL_MESSAGES } from '@app/contracts/all-messages';
import { BINDINGS, EXCHANGES, QUEUES, RETRY_DELAYS } from './topology';

const queue = (name: string) => QUEUES.find((one) => one.name === name);

describe('topology', () => {
  it('binds every message by its own routing key, and nothing by a wildcard', () => {
    const bound = BINDINGS.filter(({ exchange }) => exchange === 'commands');
    expect(bound.map(({ routingKey }) => routingKey).sort()).toEqual(ALL_MESSAGES.map(({ pattern }) => pattern).sort());
    for (const { routingKey } of BINDINGS) expect(routingKey).not.toMatch(/[*#]/);
  });

  it('names only queues and exchanges that it has', () => {
    const exchanges = EXCHANGES.map(({ name }) => name as string);
    for (const binding of BINDINGS) {
      expect(queue(binding.queue)).toBeDefined();
      expect(exchanges).toContain(binding.exchange);
    }
    for (const { arguments: args } of QUEUES) {
      if (args['x-dead-letter-exchange'] !== undefined) expect(exchanges).toContain(args['x-dead-letter-exchange']);
    }
  });

  it('routes every dead letter to a queue', () => {
    for (const { arguments: args } of QUEUES) {
      if (args['x-dead-letter-exchange'] === undefined) continue;
      expect(BINDINGS).toContainEqual(
        expect.objectContaining({ exchange: args['x-dead-letter-exchange'], routingKey: args['x-dead-letter-routing-key'] }),
      );
    }
  });

  it('bounds every queue, and refuses instead of dropping', () => {
    for (const { arguments: args } of QUEUES) {
      expect(args).toMatchObject({
        'x-queue-type': expect.stringMatching(/^(quorum|classic)$/) as string,
        'x-max-length': expect.any(Number) as number,
        'x-max-length-bytes': expect.any(Number) as number,
        'x-overflow': 'reject-publish',
      });
    }
  });

  it('loses nothing on the way to the dead letters', () => {
    const forwarding = QUEUES.filter(({ arguments: args }) => args['x-dead-letter-exchange'] !== undefined);
    expect(forwarding).toHaveLength(2 * (2 + RETRY_DELAYS.length) + 1);
    for (const { arguments: args } of forwarding) {
      expect(args).toMatchObject({ 'x-queue-type': 'quorum', 'x-dead-letter-strategy': 'at-least-once' });
    }
  });

  it('has one waiting time for each retry queue', () => {
    expect(RETRY_DELAYS.map(({ name }) => queue(`users.commands.retry.${name}`)?.arguments['x-message-ttl'])).toEqual([
      1000, 5000, 30_000, 300_000,
    ]);
  });
});
