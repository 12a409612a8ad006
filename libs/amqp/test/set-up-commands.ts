import { Commands } from '../src/calls/commands';
import type { Operation } from '../src/messages/message-properties';
import { NotWritten, type PublishOutcome } from '../src/publishing/publisher';

export const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

export const OPERATION: Operation = { kind: 'command', pattern: 'users.add.v1' };

interface Message {
  ids: string[];
  id: string;
  end: (outcome: PublishOutcome) => void;
}

/** The broker's side is the test: it ends each publication as it wants. */
export function setUpCommands(most?: number) {
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
