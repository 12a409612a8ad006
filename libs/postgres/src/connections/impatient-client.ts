import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import { sqlState } from '../errors';
import { internalsOf } from './pg-internals';
import { STATEMENT_TIMEOUT_MS } from './statement-timeout';
import { TlsClient } from './tls-client';
import { WritableClient, type WritableClientConfig } from './writable-client';

/** Longest silence during a statement, in milliseconds. The server ends each statement earlier, but not a commit that waits for a standby. */
const SILENCE_MS = STATEMENT_TIMEOUT_MS + 1000;
/** The last part of it, in which the server is asked over another connection. */
const PROBE_SHARE = 0.25;

/**
 * A connection that gives up on a silent server. Statement timeouts are enforced by the server only. After a failover, or when packets are
 * dropped, nothing else would end a statement: TCP retries for a quarter of an hour.
 */
export class ImpatientClient extends WritableClient {
  /** Whether a statement without an answer is waited for as long as the server works. */
  protected readonly waits: boolean = false;
  private readonly probeMs: number;

  constructor(
    private readonly settings: WritableClientConfig,
    private readonly silenceMs = SILENCE_MS,
  ) {
    super(settings);
    this.probeMs = silenceMs * PROBE_SHARE;
    this.once('connect', () => {
      const { stream } = internalsOf(this).connection;
      this.watch(stream);
      // on(), because a callback passed to setTimeout() runs only once, and that may be while no statement runs.
      stream.on('timeout', () => void this.onSilence());
    });
  }

  private watch(stream: Socket): void {
    stream.setTimeout(this.silenceMs - this.probeMs);
  }

  private async onSilence(): Promise<void> {
    if (this.idle) return;
    const { stream } = internalsOf(this).connection;
    const { bytesRead } = stream;
    const [answers] = await Promise.all([this.servers.answers(this.server, () => this.probe()), sleep(this.probeMs)]);
    if (this.idle || stream.destroyed || stream.bytesRead !== bytesRead) return;
    // A timeout of a socket comes once for each silence.
    if (answers && this.waits) return this.watch(stream);
    const reason = answers ? 'a statement has no answer' : 'the server is silent';
    this.cutOff(new Error(`Connection terminated: ${reason}`));
    // Running statements may succeed nevertheless.
    if (!answers) this.lost(reason, 'idle');
  }

  /** Whether the server takes part in the opening of a connection. */
  private async probe(): Promise<boolean> {
    const client = new TlsClient({ ...this.settings, connectionString: this.server, connectionTimeoutMillis: this.probeMs });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return true;
    } catch (error) {
      // It lacks connections, and says so. A refused login, as with a password that was changed meanwhile, is no reason to end long work.
      return this.waits ? error instanceof DatabaseError : sqlState(error).startsWith('53');
    } finally {
      client.end().catch(() => undefined);
    }
  }
}
