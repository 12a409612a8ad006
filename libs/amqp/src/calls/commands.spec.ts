import { nextTurn, OPERATION, setUpCommands } from '../../test/set-up-commands';
import { LIGHT_COMMAND_BYTES, MOST_COMMANDS } from '../messages/command-format';
import { Commands } from './commands';

describe(Commands.name, () => {
  it('sends the commands of one iteration in one message, and one alone as itself', async () => {
    const { ask, sent, messages } = setUpCommands();
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
    const { ask, sent, end } = setUpCommands();
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) {
      ask(id);
      await nextTurn();
    }
    expect(sent()).toEqual(['a', 'b', 'c', 'd']);
    await end(2, 'confirmed');
    expect(sent().slice(4)).toEqual(['e f']);
  });

  it('limits the commands and the bytes of a message', async () => {
    const { ask, sent } = setUpCommands(3);
    ask('a b c d');
    await nextTurn();
    expect(sent()).toEqual(['a b c', 'd']);
    const byBytes = setUpCommands();
    byBytes.ask('a b', { bytes: 200 * 1024 });
    byBytes.ask('c d', { bytes: 100 * 1024 });
    await nextTurn();
    expect(byBytes.sent()).toEqual(['a', 'b']);
    await byBytes.end(0, 'confirmed');
    expect(byBytes.sent()).toEqual(['a', 'b', 'c d']);
  });

  it('sends small commands while large ones wait for confirms', async () => {
    const { ask, sent, end } = setUpCommands();
    ask('a b c', { bytes: 1024 * 1024 });
    await nextTurn();
    ask('d');
    await nextTurn();
    expect(sent()).toEqual(['a', 'b', 'd']);
    await end(0, 'confirmed');
    expect(sent()).toEqual(['a', 'b', 'd', 'c']);
  });

  it('lets no body of more than 16 KiB share a message with a smaller one', async () => {
    const { ask, sent } = setUpCommands();
    ask('a b', { bytes: 16 * 1024 + 1 });
    ask('c d', { bytes: 16 * 1024 });
    await nextTurn();
    expect(sent().toSorted()).toEqual(['a b', 'c d']);
  });

  it('gives a tenant half of a message while another one waits', async () => {
    const { ask, messages } = setUpCommands();
    const names = (tenant: string, count: number) => Array.from({ length: count }, (_, index) => tenant + index).join(' ');
    ask(names('a', 2 * MOST_COMMANDS), { apiKey: 'a' });
    ask(names('b', MOST_COMMANDS / 2), { apiKey: 'b' });
    await nextTurn();
    const ofTenant = (tenant: string) => messages.map(({ ids }) => ids.filter((id) => id.startsWith(tenant)).length);
    expect(ofTenant('a')).toEqual([16, 32, 16]);
    expect(ofTenant('b')).toEqual([16, 0, 0]);
  });

  it('lets tenants take turns', async () => {
    const { ask, sent } = setUpCommands(3);
    ask('a1 a2 a3 a4', { apiKey: 'a' });
    ask('b1', { apiKey: 'b' });
    await nextTurn();
    expect(sent()).toEqual(['a1 b1 a2', 'a3 a4']);
  });

  it('sends each command alone when that is all the consumers can read', async () => {
    const { ask, sent } = setUpCommands(1);
    ask('a b');
    await nextTurn();
    expect(sent()).toEqual(['a', 'b']);
  });

  it.each([
    ['returned', 'The service is unavailable; nothing was executed.'],
    ['nacked', 'The service is unavailable; nothing was executed.'],
    ['forbidden', 'The broker account may not publish this operation to this exchange.'],
    [
      'lost',
      'The outcome is unknown: the connection was lost before the answer came. It is safe to repeat with the same identity.',
    ],
  ] as const)('gives all commands of a message the same answer: %s', async (outcome, message) => {
    const { ask, end, rejected } = setUpCommands();
    ask('a b');
    await nextTurn();
    await end(0, outcome);
    expect(rejected).toEqual([
      ['a', message],
      ['b', message],
    ]);
  });

  it('says that nothing was executed when the message was not written', async () => {
    const { ask, fail, rejected } = setUpCommands();
    fail('no connection');
    ask('a b');
    await nextTurn();
    await nextTurn();
    expect(rejected.map(([id]) => id)).toEqual(['a', 'b']);
  });

  it('never sends a command that was given up before it was sent', async () => {
    const { commands, ask, sent } = setUpCommands();
    ask('a b');
    commands.forget('a');
    await nextTurn();
    expect(sent()).toEqual(['b']);
  });

  it('hands out what was not sent, once', async () => {
    const { commands, ask, sent } = setUpCommands();
    ask('a');
    await nextTurn();
    ask('b c');
    expect(commands.takeUnsent().map(({ correlationId }) => correlationId)).toEqual(['b', 'c']);
    expect(commands.takeUnsent()).toEqual([]);
    await nextTurn();
    expect(sent()).toEqual(['a']);
  });

  it('refuses more than 64 MiB that wait', async () => {
    const { ask, rejected, sent, commands } = setUpCommands();
    for (let number = 1; number <= 65; number++) ask(`c${number}`, { bytes: 1024 * 1024 });
    expect(rejected.map(([id]) => id)).toEqual(['c65']);
    commands.takeUnsent();
    ask('later', { bytes: 1024 * 1024 });
    await nextTurn();
    expect(sent()).toEqual(['later']);
  });

  it('sends what changes rows in messages of one key: its work is not in its body', async () => {
    const { ask, sent } = setUpCommands();
    const operation = { ...OPERATION, changesRows: true };
    ask('a b', { operation });
    ask('x', { operation, apiKey: 'other' });
    ask('c', { operation });
    await nextTurn();
    expect(sent()).toEqual(['a b c', 'x']);
  });

  it('takes a smaller body for heavy where the operation says so', async () => {
    const { ask, sent } = setUpCommands();
    const operation = { ...OPERATION, lightBytes: 512 };
    ask('a b', { operation, bytes: 512 });
    ask('x', { operation, bytes: 512, apiKey: 'other' });
    ask('l', { operation, bytes: 511 });
    ask('m', { operation, bytes: 511, apiKey: 'other' });
    await nextTurn();
    expect(sent().sort()).toEqual(['a b', 'l m', 'x']);
  });

  it('sends light commands of all keys in one message, and heavy ones with those of their own key', async () => {
    const { ask, sent } = setUpCommands();
    const heavy = { bytes: LIGHT_COMMAND_BYTES };
    ask('a b', heavy);
    ask('x y', { ...heavy, apiKey: 'other' });
    ask('c', heavy);
    ask('l');
    ask('m', { apiKey: 'other' });
    await nextTurn();
    expect(sent().sort()).toEqual(['a b c', 'l m', 'x y']);
  });
});
