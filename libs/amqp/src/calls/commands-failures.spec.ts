import { nextTurn, OPERATION, setUpCommands } from '../../test/set-up-commands';

describe('a queue of commands that confirms nothing', () => {
  beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
  afterEach(() => void jest.useRealTimers());

  const askFour = async ({ ask }: Pick<ReturnType<typeof setUpCommands>, 'ask'>) => {
    for (const id of ['a', 'b', 'c', 'd']) {
      ask(id);
      await nextTurn();
    }
  };

  it('has commands refused that wait for it, and takes them again after a confirm', async () => {
    const { ask, sent, end, rejected, ...system } = setUpCommands();
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
    const { ask, sent, rejected } = setUpCommands();
    ask('a');
    await nextTurn();
    jest.advanceTimersByTime(900);
    await nextTurn();
    ask('b');
    await nextTurn();
    expect([sent(), rejected]).toEqual([['a', 'b'], []]);
  });

  it('gets nothing of other operations of the same service, and everything of other services', async () => {
    const { ask, sent, end, rejected } = setUpCommands();
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
    await end(0, 'confirmed');
    ask('g', { operation: { ...add, pattern: 'users.delete.v1' } });
    await nextTurn();
    expect(sent().at(-1)).toBe('g');
  });

  it('is not one that could confirm nothing because of an alarm of the broker', async () => {
    const { commands, ask, sent, end, rejected } = setUpCommands();
    await askFour({ ask });
    jest.advanceTimersByTime(900);
    await nextTurn();
    commands.restart();
    ask('e');
    await nextTurn();
    expect([sent().length, rejected]).toEqual([4, []]);
    await end(0, 'confirmed');
    expect(sent().at(-1)).toBe('e');
  });

  it('is not one that only large messages wait for', async () => {
    const { ask, sent, rejected } = setUpCommands();
    ask('a b c', { bytes: 1024 * 1024, operation: { ...OPERATION, service: 'users' } });
    await nextTurn();
    jest.advanceTimersByTime(900);
    await nextTurn();
    ask('d', { operation: { ...OPERATION, service: 'users' } });
    await nextTurn();
    expect([sent(), rejected.map(([id]) => id)]).toEqual([['a', 'b', 'd'], ['c']]);
  });

  it('is not one that confirms slowly', async () => {
    const { ask, sent, end, rejected } = setUpCommands();
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

describe('a message with commands that its consumer could not read', () => {
  it('is sent again, each command alone, and so are the next ones', async () => {
    const { commands, messages, ask, sent, end, unread } = setUpCommands();
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
      const { commands, messages, ask, sent } = setUpCommands();
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
    const { commands, messages, ask, sent } = setUpCommands();
    ask('a b c');
    await nextTurn();
    commands.forget('b');
    expect(commands.refused(messages[0].id)).toBe(true);
    expect(sent()).toEqual(['a b c', 'a', 'c']);
    // Another consumer may have executed them before it ended.
    expect([commands.isRepeated('a'), commands.isRepeated('c')]).toEqual([true, true]);
  });

  it('is none, once all commands of it were answered or given up', async () => {
    const { commands, messages, ask, sent, unread } = setUpCommands();
    ask('a b');
    await nextTurn();
    commands.forget('b');
    commands.forget('a');
    expect(commands.refused(messages[0].id)).toBe(false);
    expect([sent(), unread]).toEqual([['a b'], []]);
  });
});
