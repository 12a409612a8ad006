import { Commands } from './commands';
import { MOST_COMMANDS } from '../messages/command-format';
import type { Operation } from '../messages/message-properties';
import { LIGHT_COMMAND_BYTES } from '../messages/command-format';
import { NotWritten, type PublishOutcome } from '../publishing/publisher';

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

const OPERATION: Operation = { kind: 'command', pattern: 'users.add.v1' };

interface Message {
  ids: string[];
  id: string;
  end: (outcome: PublishOutcome) => void;
}

/** The broker's side is the test: it ends each publication as it wants. */
function setUp(most?: number) {
  const messages: Message[] = [];
  const rejected: [string, string][] = [];
  const unread: string[] = [];
  let problem: string | undefined;
  const commands = new Commands(
    {
      publish: async (requests, id) => {
        if (problem !== undefined) throw new NotWritten(problem);
        return new Promise<PublishOutcome>((end) =>
          messages.push({ ids: requests.map(({ correlationId }) => correlationId), id, end }),
        );
      },
      reject: (id, { message }) => rejected.push([id, message]),
      unread: (pattern) => unread.push(pattern),
    },
    most,
  );
  const ask = (ids: string, { apiKey = 'key', bytes = 2, operation = OPERATION } = {}) => {
    for (const correlationId of ids.split(' '))
      commands.ask({
        operation,
        body: Buffer.alloc(bytes),
        options: { apiKey, requestId: 'r', timeoutMs: 5000, messageId: correlationId },
        correlationId,
        deadline: performance.now() + 5000,
      });
  };
  const sent = () => messages.map(({ ids }) => ids.join(' '));
  const end = async (index: number, outcome: PublishOutcome) => {
    messages[index].end(outcome);
    await nextTurn();
    await nextTurn();
  };
  return { commands, messages, rejected, unread, ask, sent, end, fail: (reason: string) => (problem = reason) };
}

describe(Commands.name, () => {
  it('sends the commands of one iteration in one message, and one alone as itself', async () => {
    const { ask, sent, messages } = setUp();
    ask('a b');
    expect(sent()).toEqual([]);
    await nextTurn();
    ask('c');
    await nextTurn();
    expect(sent()).toEqual(['a b', 'c']);
    expect(messages[0].id).toHaveLength(36);
    expect(messages[1].id).toBe('c');
  });

  it('collects while four messages are unconfirmed, and goes on with the next confirm', async () => {
    const { ask, sent, end } = setUp();
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
      ask(id);
      await nextTurn();
    }
    expect(sent()).toEqual(['a', 'b', 'c', 'd']);
    await end(2, 'confirmed');
    expect(sent().slice(4)).toEqual(['e f']);
  });

  it('limits the commands and the bytes of a message', async () => {
    const { ask, sent } = setUp(3);
    ask('a b c d');
    await nextTurn();
    expect(sent()).toEqual(['a b c', 'd']);
    const byBytes = setUp();
    byBytes.ask('a b', { bytes: 200 * 1024 });
    byBytes.ask('c d', { bytes: 100 * 1024 });
    await nextTurn();
    expect(byBytes.sent()).toEqual(['a', 'b']);
    await byBytes.end(0, 'confirmed');
    expect(byBytes.sent()).toEqual(['a', 'b', 'c d']);
  });

  it('sends small commands while large ones wait for confirms', async () => {
    const { ask, sent, end } = setUp();
    ask('a b c', { bytes: 1024 * 1024 });
    await nextTurn();
    ask('d');
    await nextTurn();
    expect(sent()).toEqual(['a', 'b', 'd']);
    await end(0, 'confirmed');
    expect(sent()).toEqual(['a', 'b', 'd', 'c']);
  });

  it('lets no body of more than 16 KiB share a message with a smaller one', async () => {
    const { ask, sent } = setUp();
    ask('a b', { bytes: 16 * 1024 + 1 });
    ask('c d', { bytes: 16 * 1024 });
    await nextTurn();
    expect(sent().toSorted()).toEqual(['a b', 'c d']);
  });

  it('gives a tenant half of a message while another one waits', async () => {
    const { ask, messages } = setUp();
    const names = (tenant: string, count: number) => Array.from({ length: count }, (_, index) => tenant + index).join(' ');
    ask(names('a', 2 * MOST_COMMANDS), { apiKey: 'a' });
    ask(names('b', MOST_COMMANDS / 2), { apiKey: 'b' });
    await nextTurn();
    const ofTenant = (tenant: string) => messages.map(({ ids }) => ids.filter((id) => id.startsWith(tenant)).length);
    expect(ofTenant('a')).toEqual([16, 32, 16]);
    expect(ofTenant('b')).toEqual([16, 0, 0]);
  });

  it('lets tenants take turns', async () => {
    const { ask, sent } = setUp(3);
    ask('a1 a2 a3 a4', { apiKey: 'a' });
    ask('b1', { apiKey: 'b' });
    await nextTurn();
    expect(sent()).toEqual(['a1 b1 a2', 'a3 a4']);
  });

  it('sends each command alone when that is all the consumers can read', async () => {
    const { ask, sent } = setUp(1);
    ask('a b');
    await nextTurn();
    expect(sent()).toEqual(['a', 'b']);
  });

  it.each([
    ['returned', 'The service is unavailable; nothing was executed.'],
    ['nacked', 'The service is unavailable; nothing was executed.'],
    ['forbidden', 'The broker account may not publish this operation.'],
    [
      'lost',
      'The outcome is unknown: the connection was lost before the answer came. It is safe to repeat with the same identity.',
    ],
  ] as const)('gives all commands of a message the same answer: %s', async (outcome, message) => {
    const { ask, end, rejected } = setUp();
    ask('a b');
    await nextTurn();
    await end(0, outcome);
    expect(rejected).toEqual([
      ['a', message],
      ['b', message],
    ]);
  });

  it('says that nothing was executed when the message was not written', async () => {
    const { ask, fail, rejected } = setUp();
    fail('no connection');
    ask('a b');
    await nextTurn();
    await nextTurn();
    expect(rejected.map(([id]) => id)).toEqual(['a', 'b']);
  });

  it('never sends a command that was given up before it was sent', async () => {
    const { commands, ask, sent } = setUp();
    ask('a b');
    expect([commands.isUnsent('a'), commands.isUnsent('unknown')]).toEqual([true, false]);
    commands.forget('a');
    await nextTurn();
    expect(sent()).toEqual(['b']);
    expect(commands.isUnsent('b')).toBe(false);
  });

  it('hands out what was not sent, once', async () => {
    const { commands, ask, sent } = setUp();
    ask('a');
    await nextTurn();
    ask('b c');
    expect(commands.takeUnsent().map(({ correlationId }) => correlationId)).toEqual(['b', 'c']);
    expect(commands.takeUnsent()).toEqual([]);
    await nextTurn();
    expect(sent()).toEqual(['a']);
  });

  it('refuses more than 64 MiB that wait', async () => {
    const { ask, rejected, sent, commands } = setUp();
    for (let number = 1; number <= 65; number++) ask(`c${number}`, { bytes: 1024 * 1024 });
    expect(rejected.map(([id]) => id)).toEqual(['c65']);
    commands.takeUnsent();
    ask('later', { bytes: 1024 * 1024 });
    await nextTurn();
    expect(sent()).toEqual(['later']);
  });

  describe('a queue that confirms nothing', () => {
    beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
    afterEach(() => void jest.useRealTimers());

    const askFour = async ({ ask }: Pick<ReturnType<typeof setUp>, 'ask'>) => {
      for (const id of ['a', 'b', 'c', 'd']) {
        ask(id);
        await nextTurn();
      }
    };

    it('has commands refused that wait for it, and takes them again after a confirm', async () => {
      const { ask, sent, end, rejected, ...system } = setUp();
      await askFour({ ask });
      ask('e');
      jest.advanceTimersByTime(899);
      await nextTurn();
      expect(rejected).toEqual([]);
      jest.advanceTimersByTime(1);
      await nextTurn();
      ask('f');
      const refusal = 'The service is unavailable; nothing was executed.';
      expect(rejected).toEqual([
        ['e', refusal],
        ['f', refusal],
      ]);
      await end(0, 'confirmed');
      ask('g');
      await nextTurn();
      // Full again, and not silent any more.
      ask('h');
      jest.advanceTimersByTime(899);
      await nextTurn();
      expect(sent()).toEqual(['a', 'b', 'c', 'd', 'g']);
      expect(rejected).toHaveLength(2);
      expect(system.commands.takeUnsent().map(({ correlationId }) => correlationId)).toEqual(['h']);
    });

    it('gets messages while few are on their way: they show when it is back', async () => {
      const { ask, sent, rejected } = setUp();
      ask('a');
      await nextTurn();
      jest.advanceTimersByTime(900);
      await nextTurn();
      ask('b');
      await nextTurn();
      expect([sent(), rejected]).toEqual([['a', 'b'], []]);
    });

    it('gets nothing of other operations of the same service, and everything of other services', async () => {
      const { commands, ask, sent, end, rejected } = setUp();
      const add = { kind: 'command', pattern: 'users.add.v1', service: 'users' } as const;
      for (const id of ['a', 'b', 'c', 'd']) {
        ask(id, { operation: add });
        await nextTurn();
      }
      jest.advanceTimersByTime(900);
      await nextTurn();
      ask('e', { operation: { ...add, pattern: 'users.delete.v1' } });
      ask('f', { operation: { kind: 'command', pattern: 'notifications.add.v1', service: 'notifications' } });
      await nextTurn();
      expect([sent().slice(4), rejected.map(([id]) => id)]).toEqual([['f'], ['e']]);
      expect(commands.isUnsent('f')).toBe(false);
      await end(0, 'confirmed');
      ask('g', { operation: { ...add, pattern: 'users.delete.v1' } });
      await nextTurn();
      expect(sent().at(-1)).toBe('g');
    });

    it('is not one that could confirm nothing because of an alarm of the broker', async () => {
      const { commands, ask, sent, end, rejected } = setUp();
      await askFour({ ask });
      jest.advanceTimersByTime(900);
      await nextTurn();
      commands.restart();
      ask('e');
      await nextTurn();
      expect([rejected, commands.isUnsent('e')]).toEqual([[], true]);
      await end(0, 'confirmed');
      expect(sent().at(-1)).toBe('e');
    });

    it('is not one that only large messages wait for', async () => {
      const { ask, sent, rejected } = setUp();
      ask('a b c', { bytes: 1024 * 1024, operation: { ...OPERATION, service: 'users' } });
      await nextTurn();
      jest.advanceTimersByTime(900);
      await nextTurn();
      ask('d', { operation: { ...OPERATION, service: 'users' } });
      await nextTurn();
      expect([sent(), rejected.map(([id]) => id)]).toEqual([['a', 'b', 'd'], ['c']]);
    });

    it('is not one that confirms slowly', async () => {
      const { ask, sent, end, rejected } = setUp();
      await askFour({ ask });
      for (const [index, id] of ['e', 'f', 'g'].entries()) {
        ask(id);
        jest.advanceTimersByTime(800);
        await nextTurn();
        await end(index, 'confirmed');
      }
      expect([sent().slice(4), rejected]).toEqual([['e', 'f', 'g'], []]);
    });
  });

  it('sends what changes rows in messages of one key: its work is not in its body', async () => {
    const { ask, sent } = setUp();
    const operation = { ...OPERATION, changesRows: true };
    ask('a b', { operation });
    ask('x', { operation, apiKey: 'other' });
    ask('c', { operation });
    await nextTurn();
    expect(sent()).toEqual(['a b c', 'x']);
  });

  it('sends light commands of all keys in one message, and heavy ones with those of their own key', async () => {
    const { ask, sent } = setUp();
    const heavy = { bytes: LIGHT_COMMAND_BYTES };
    ask('a b', heavy);
    ask('x y', { ...heavy, apiKey: 'other' });
    ask('c', heavy);
    ask('l');
    ask('m', { apiKey: 'other' });
    await nextTurn();
    expect(sent().sort()).toEqual(['a b c', 'l m', 'x y']);
  });

  describe('a message that its consumer could not read', () => {
    it('is sent again, each command alone, and so are the next ones', async () => {
      const { commands, messages, ask, sent, end, unread } = setUp();
      ask('a b');
      await nextTurn();
      await end(0, 'confirmed');
      expect(commands.refused(messages[0].id)).toBe(true);
      expect(commands.refused(messages[0].id)).toBe(false);
      ask('c d');
      await nextTurn();
      expect(sent()).toEqual(['a b', 'a', 'b', 'c', 'd']);
      expect([commands.isRepeated('a'), commands.isRepeated('c')]).toEqual([true, false]);
      expect(unread).toEqual(['users.add.v1']);
    });

    it('is followed by shared messages after a minute', async () => {
      jest.useFakeTimers({ doNotFake: ['setImmediate'] });
      try {
        const { commands, messages, ask, sent } = setUp();
        ask('a b');
        await nextTurn();
        commands.refused(messages[0].id);
        jest.advanceTimersByTime(59_999);
        ask('c d');
        await nextTurn();
        jest.advanceTimersByTime(1);
        ask('e f');
        await nextTurn();
        expect(sent()).toEqual(['a b', 'a', 'b', 'c', 'd', 'e f']);
      } finally {
        jest.useRealTimers();
      }
    });

    it('is sent again without a command that was answered or given up', async () => {
      const { commands, messages, ask, sent } = setUp();
      ask('a b c');
      await nextTurn();
      commands.forget('b');
      expect(commands.refused(messages[0].id)).toBe(true);
      expect(sent()).toEqual(['a b c', 'a', 'c']);
      // Another consumer may have executed them before it ended.
      expect([commands.isRepeated('a'), commands.isRepeated('c')]).toEqual([true, true]);
    });

    it('is none, once all commands of it were answered or given up', async () => {
      const { commands, messages, ask, sent, unread } = setUp();
      ask('a b');
      await nextTurn();
      commands.forget('b');
      commands.forget('a');
      expect(commands.refused(messages[0].id)).toBe(false);
      expect([sent(), unread]).toEqual([['a b'], []]);
    });
  });
});
