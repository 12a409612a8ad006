import { Logger } from '@nestjs/common';
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace';
import { spansEnded, spansExported } from './metrics';

type Done = Parameters<SpanExporter['export']>[1];

/** Counts spans on their way to the queue. */
export class CountingProcessor extends BatchSpanProcessor {
  override onEnd(span: ReadableSpan): void {
    spansEnded.inc();
    super.onEnd(span);
  }
}

/** Counts what the receiver has taken, and logs once when it goes away and when it is back. */
export class CountingExporter implements SpanExporter {
  private readonly logger = new Logger('Tracing');
  private away = false;

  constructor(private readonly exporter: SpanExporter) {}

  export(spans: ReadableSpan[], done: Done): void {
    this.exporter.export(spans, (result) => {
      const failed = result.error !== undefined;
      if (!failed) spansExported.inc(spans.length);
      if (failed !== this.away) this.tell(failed, result.error);
      this.away = failed;
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }

  /** Only the code: the message may contain the answer of the receiver, or its address with a password. */
  private tell(away: boolean, error: (Error & { code?: string | number }) | undefined): void {
    if (!away) return this.logger.log({ msg: 'the receiver of traces takes spans again' });
    this.logger.warn({ msg: 'the receiver of traces takes no spans: they are dropped', reason: error?.code ?? error?.name });
  }
}
