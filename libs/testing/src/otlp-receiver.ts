import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeSpans } from './otlp-protobuf';
import type { Field, ReceivedSpan } from './otlp-span';

/** A receiver of traces, OTLP over HTTP as JSON or protobuf. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** Content types of the requests. */
  readonly contentTypes = new Set<string>();
  readonly headers: NodeJS.Dict<string | string[]>[] = [];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<OtlpReceiver> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const type = request.headers['content-type'] ?? '';
        receiver.contentTypes.add(type);
        receiver.headers.push(request.headers);
        const body = Buffer.concat(chunks);
        receiver.spans.push(...(type === 'application/json' ? readJson(JSON.parse(body.toString()) as Json) : decodeSpans(body)));
        response.writeHead(200, { 'content-type': type }).end(type === 'application/json' ? '{}' : '');
      });
    });
    const receiver = new OtlpReceiver(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  of(traceId: string): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId);
  }

  /** The spans of a trace, one in a line, indented below their parents; equal lines once, siblings sorted. */
  tree(traceId: string): string[] {
    const spans = this.of(traceId);
    const ids = new Set(spans.map(({ spanId }) => spanId));
    const below = (parents: readonly ReceivedSpan[], depth: number): string[] =>
      [...new Set(parents.map(({ name, service }) => `${name} (${service})`))].sort().flatMap((title) => {
        const same = parents.filter(({ name, service }) => `${name} (${service})` === title).map(({ spanId }) => spanId);
        const children = spans.filter(({ parentSpanId }) => same.includes(parentSpanId));
        return [`${'  '.repeat(depth)}${title}`, ...below(children, depth + 1)];
      });
    return below(
      spans.filter(({ parentSpanId }) => !ids.has(parentSpanId)),
      0,
    );
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

interface Json {
  resourceSpans: {
    resource: { attributes: Field[] };
    scopeSpans: { spans: (Omit<ReceivedSpan, 'service' | 'attributes' | 'links' | 'failed'> & Listed)[] }[];
  }[];
}
interface Listed {
  attributes: Field[];
  links?: { spanId: string }[];
  status: { code?: number };
}

const readJson = ({ resourceSpans }: Json): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ attributes, links = [], status, parentSpanId = '', ...span }) => ({
        ...span,
        parentSpanId,
        service: String(valuesOf(resource.attributes)['service.name']),
        attributes: valuesOf(attributes),
        links: links.map(({ spanId }) => spanId),
        failed: status.code === 2,
      })),
    ),
  );

const valuesOf = (fields: readonly Field[]): Record<string, unknown> =>
  Object.fromEntries(fields.map(({ key, value }) => [key, Object.values(value)[0]]));
