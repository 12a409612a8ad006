import type { RepetitionReason } from '@app/amqp/connection/observer';
import type { PublishOutcome } from '@app/amqp/publishing/publisher';
import { Queries } from '@app/amqp/calls/queries';

const OPERATION = { kind: 'query', pattern: 'users.exists.v1' } as const;
const OPTIONS = { requestId: 'r', timeoutMs: 5000 };
/** One millisecond more, for the iteration of the event loop that follows. */
export const PATIENCE_MS = 401;

interface Copy {
  exchange: string;
  id: string;
  timeoutMs: number;
  end: (outcome: PublishOutcome) => void;
}

/** The broker's side is the test: it ends each publication as it wants. */
export function setUpQueries(standby: '' | 'standby' = 'standby') {
  const copies: Copy[] = [];
  const rejected: [string, Error][] = [];
  const repeated: RepetitionReason[] = [];
  const queries = new Queries(
    {
      publish: (exchange, _, id, timeoutMs) =>
        new Promise<PublishOutcome>((end) => copies.push({ exchange, id, timeoutMs, end })),
      reject: (id, error) => rejected.push([id, error]),
      repeated: (_, reason) => repeated.push(reason),
      isWaiting: () => false,
    },
    'first',
    standby || undefined,
  );
  const ask = (id: string, { timeoutMs, apiKey }: { timeoutMs: number; apiKey?: string } = OPTIONS) => {
    const deadline = performance.now() + timeoutMs;
    const options = { ...OPTIONS, apiKey };
    queries.ask({ operation: OPERATION, body: Buffer.from('{}'), options, correlationId: id, deadline });
  };
  const sent = () => copies.map(({ exchange, id }) => `${exchange} ${id}`);
  /** Ends the newest publication of this name. */
  const end = async (name: string, outcome: PublishOutcome) => {
    copies.findLast(({ exchange, id }) => `${exchange} ${id}` === name)!.end(outcome);
    await jest.advanceTimersByTimeAsync(0);
  };
  return { queries, copies, rejected, repeated, ask, sent, end };
}
