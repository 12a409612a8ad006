import { randomFillSync } from 'node:crypto';
import type { IdGenerator } from '@opentelemetry/sdk-trace';

const TRACE_BYTES = 16;
const SPAN_BYTES = 8;
const pool = Buffer.alloc(256 * TRACE_BYTES);
let at = pool.length;

function random(bytes: number): string {
  if (at + bytes > pool.length) {
    randomFillSync(pool);
    at = 0;
  }
  // Ids of zeros are invalid, and less likely than any other accident.
  return pool.toString('hex', at, (at += bytes));
}

const newSpanId = (): string => random(SPAN_BYTES);
export const newTraceId = (): string => random(TRACE_BYTES);

let chosen: string | undefined;

/** The next trace that the SDK begins has this id. */
export function useTraceId(traceId: string): void {
  chosen = traceId;
}

export const IDS: IdGenerator = {
  generateSpanId: newSpanId,
  generateTraceId: () => {
    const traceId = chosen ?? newTraceId();
    chosen = undefined;
    return traceId;
  },
};
