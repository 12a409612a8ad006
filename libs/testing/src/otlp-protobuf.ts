import type { ReceivedSpan } from './otlp-span';

/** The length-delimited fields of a protobuf message by number, and its varints. */
function fieldsOf(message: Buffer): { bytes: Map<number, Buffer[]>; numbers: Map<number, number> } {
  const bytes = new Map<number, Buffer[]>();
  const numbers = new Map<number, number>();
  let at = 0;
  const varint = (): number => {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = message[at++];
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = varint();
    const [number, wire] = [key >> 3, key & 7];
    if (wire === 0) numbers.set(number, varint());
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else {
      const length = varint();
      bytes.set(number, [...(bytes.get(number) ?? []), message.subarray(at, (at += length))]);
    }
  }
  return { bytes, numbers };
}

const all = (message: Buffer, number: number): Buffer[] => fieldsOf(message).bytes.get(number) ?? [];
const one = (message: Buffer, number: number): Buffer => all(message, number)[0] ?? Buffer.alloc(0);
const texts = (fields: Buffer[]): Record<string, unknown> =>
  Object.fromEntries(fields.map((field) => [one(field, 1).toString(), one(one(field, 2), 1).toString()]));

/** Reads an ExportTraceServiceRequest; of its attributes only those that are texts. */
export const decodeSpans = (request: Buffer): ReceivedSpan[] =>
  all(request, 1).flatMap((resourceSpans) =>
    all(resourceSpans, 2)
      .flatMap((scopeSpans) => all(scopeSpans, 2))
      .map((span) => ({
        service: String(texts(all(one(resourceSpans, 1), 1))['service.name']),
        traceId: one(span, 1).toString('hex'),
        spanId: one(span, 2).toString('hex'),
        parentSpanId: one(span, 4).toString('hex'),
        name: one(span, 5).toString(),
        kind: fieldsOf(span).numbers.get(6) ?? 0,
        attributes: texts(all(span, 9)),
        links: all(span, 13).map((link) => one(link, 2).toString('hex')),
        failed: fieldsOf(one(span, 15)).numbers.get(3) === 2,
      })),
  );
