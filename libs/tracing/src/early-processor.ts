import { Logger } from '@nestjs/common';
import { createOtlpHttpExportDelegate, convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import { JsonTraceSerializer, ProtobufTraceSerializer, type ISerializer } from '@opentelemetry/otlp-transformer';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { queueLimit, spansEnded, spansExported } from './metrics';
import type { TracingConfig } from './tracing-config';

/** Spans that wait for the receiver: about half a KiB each. More are dropped and counted. */
const MAX_WAITING = 2048;
/** Spans that are serialised together. While they wait for each other they are objects, of which the garbage collector copies those that live on. */
const PACK_SPANS = 32;
/** Spans that are sent without waiting for more. One request has at most this number. */
const SEND_SPANS = 512;
const SEND_EVERY_MS = 1000;
/** Repetitions of one request included. */
const SEND_TIMEOUT_MS = 10_000;

/** Spans in the form in which they are sent. */
interface Pack {
  bytes: Uint8Array;
  spans: number;
}

interface Format {
  contentType: string;
  serializer: ISerializer<ReadableSpan[], unknown>;
  /** Makes one request of several. */
  join: (parts: readonly Uint8Array[]) => Uint8Array;
}

const BEFORE_SPANS = '{"resourceSpans":[';
const AFTER_SPANS = ']}';

const FORMATS: Record<TracingConfig['otlpProtocol'], Format> = {
  'http/protobuf': {
    contentType: 'application/x-protobuf',
    serializer: ProtobufTraceSerializer,
    // All that a request has is a repeated field.
    join: (parts) => Buffer.concat(parts),
  },
  'http/json': {
    contentType: 'application/json',
    serializer: JsonTraceSerializer,
    join: (parts) => {
      const inner = parts.map((part) => Buffer.from(part).toString().slice(BEFORE_SPANS.length, -AFTER_SPANS.length));
      return Buffer.from(BEFORE_SPANS + inner.join(',') + AFTER_SPANS);
    },
  },
};

/**
 * Sends spans in batches, and serialises them soon after their end. The SDK's own processor keeps the objects until they are sent, which is longer
 * than young memory lasts: then most of the cost of a span is garbage collection.
 */
export class EarlyProcessor implements SpanProcessor {
  private readonly logger = new Logger('Tracing');
  private readonly format: Format;
  private readonly receiver;
  private ended: ReadableSpan[] = [];
  private readonly packs: Pack[] = [];
  /** Spans in both. */
  private waiting = 0;
  private sending?: Promise<void>;
  private timer?: NodeJS.Timeout;
  private stopped = false;
  private away = false;

  constructor(protocol: TracingConfig['otlpProtocol'], url: string, headers: Record<string, string>) {
    this.format = FORMATS[protocol];
    const { contentType, serializer, join } = this.format;
    // The exporters of the SDK call it, too: nothing else obeys OTEL_EXPORTER_OTLP_COMPRESSION and OTEL_EXPORTER_OTLP_CERTIFICATE.
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
    const options = convertLegacyHttpOptions({ url, headers, timeoutMillis: SEND_TIMEOUT_MS }, 'TRACES', 'v1/traces', {
      'Content-Type': contentType,
    });
    this.receiver = createOtlpHttpExportDelegate<Pack[], unknown>(
      options,
      {
        serializeRequest: (packs) => join(packs.map(({ bytes }) => bytes)),
        deserializeResponse: (data) => serializer.deserializeResponse(data),
      },
      'otlp_http_span_exporter',
      { name: 'span', countItems: spansOf },
      undefined,
    );
    queueLimit.set(MAX_WAITING);
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    spansEnded.inc();
    if (this.stopped || this.waiting >= MAX_WAITING) return;
    this.waiting++;
    if (this.ended.push(span) >= PACK_SPANS) this.pack();
    this.goOn();
  }

  async forceFlush(): Promise<void> {
    while (this.waiting > 0) await this.send();
    await this.sending;
  }

  async shutdown(): Promise<void> {
    this.stopped = true;
    await this.forceFlush();
    await this.receiver.shutdown();
  }

  private goOn(): void {
    if (this.waiting >= SEND_SPANS) void this.send();
    else if (this.waiting > 0) this.timer ??= setTimeout(() => void this.send(), SEND_EVERY_MS).unref();
  }

  private pack(): void {
    if (this.ended.length === 0) return;
    const bytes = this.format.serializer.serializeRequest(this.ended);
    if (bytes) this.packs.push({ bytes, spans: this.ended.length });
    this.ended = [];
  }

  /** Sends one request. One is under way at a time. */
  private send(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.sending ??= this.sendNext().finally(() => {
      this.sending = undefined;
      this.goOn();
    });
    return this.sending;
  }

  private async sendNext(): Promise<void> {
    this.pack();
    const packs = this.packs.splice(0, SEND_SPANS / PACK_SPANS);
    this.waiting -= spansOf(packs);
    await new Promise<void>((resolve) => {
      // A receiver that answers for ever, byte by byte, is given up.
      const timer = setTimeout(resolve, 2 * SEND_TIMEOUT_MS).unref();
      this.export(packs, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  private export(packs: Pack[], done: () => void): void {
    this.receiver.export(packs, ({ error }) => {
      const failed = error !== undefined;
      if (!failed) spansExported.inc(spansOf(packs));
      if (failed !== this.away) this.log(failed, error);
      this.away = failed;
      done();
    });
  }

  /** Once when the receiver goes away, and once when it is back. Only the code: the message may contain its answer, or its address with a password. */
  private log(away: boolean, error: (Error & { code?: string | number }) | undefined): void {
    if (!away) return this.logger.log({ msg: 'the receiver of traces takes spans again' });
    this.logger.warn({ msg: 'the receiver of traces takes no spans: they are dropped', reason: error?.code ?? error?.name });
  }
}

const spansOf = (packs: readonly Pack[]): number => packs.reduce((sum, { spans }) => sum + spans, 0);
