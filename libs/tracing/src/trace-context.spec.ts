import { readStoredTrace, readTrace, storedTrace, traceHeaders } from './trace-context';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const TRACEPARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;

describe(readTrace.name, () => {
  it('reads what it writes', () => {
    const context = readTrace(TRACEPARENT, 'a=1,b=2')!;
    expect(context).toMatchObject({ traceId: TRACE_ID, spanId: '00f067aa0ba902b7', traceFlags: 1, isRemote: true });
    expect(traceHeaders(context)).toEqual({ traceparent: TRACEPARENT, tracestate: 'a=1,b=2' });
    expect(traceHeaders(readStoredTrace(storedTrace(context))!)).toEqual(traceHeaders(context));
    expect(storedTrace(readTrace(TRACEPARENT)!)).toBe(TRACEPARENT);
  });

  it('keeps of the flags only whether it is sampled', () => {
    expect(traceHeaders(readTrace(TRACEPARENT.replace(/01$/, 'ff'))!).traceparent).toBe(TRACEPARENT);
    expect(readTrace(TRACEPARENT.replace(/01$/, 'fe'))!.traceFlags).toBe(0);
  });

  it.each([
    ['nothing', undefined],
    ['an empty one', ''],
    ['two joined by Node', `${TRACEPARENT}, ${TRACEPARENT}`],
    ['an array', [TRACEPARENT]],
    ['another version', TRACEPARENT.replace(/^00/, '01')],
    ['a longer one', `${TRACEPARENT}-00`],
    ['capital letters', TRACEPARENT.toUpperCase()],
    ['a line break', `${TRACEPARENT.slice(0, 54)}\n`],
    ['no trace id', TRACEPARENT.replace(TRACE_ID, '0'.repeat(32))],
    ['no span id', TRACEPARENT.replace('00f067aa0ba902b7', '0'.repeat(16))],
    ['a buffer', Buffer.from(TRACEPARENT)],
    ['a mebibyte', 'a'.repeat(2 ** 20)],
  ])('has no trace with %s', (_, traceparent) => {
    expect(readTrace(traceparent)).toBeUndefined();
  });

  it.each([
    ['longer than 512 characters', `a=${'x'.repeat(511)}`],
    ['with a line break', 'a=1\r\nx: y'],
    ['that is not ASCII', 'a=é'],
    ['that is no text', 7],
  ])('goes on without a tracestate %s', (_, tracestate) => {
    expect(traceHeaders(readTrace(TRACEPARENT, tracestate)!)).toEqual({ traceparent: TRACEPARENT });
  });
});
