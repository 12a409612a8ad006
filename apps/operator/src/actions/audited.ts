import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { Logger } from '@nestjs/common';
import { reasonOf } from '@app/postgres/errors';
import { Refusal } from '../admission/refusal';
import type { AuditRepository } from '../db/audit.repository';

const logger = new Logger('Audit');

/** The actions of one form, with an audit line for each of their objects. */
export class AuditedForm {
  readonly batch = randomUUID();

  constructor(
    private readonly audit: AuditRepository,
    private readonly request: FastifyRequest,
    private readonly action: string,
  ) {}

  /**
   * Writes the audit line, does the work, and adds its outcome to the line. Without the line it does nothing.
   *
   * @param work returns its result and the outcome in words
   * @throws Refusal 503 when the line cannot be written; whatever `work` throws
   */
  async run<T>(target: string, detail: string, work: () => Promise<{ outcome: string; result: T }>): Promise<T> {
    const { session, ip } = this.request;
    const line = { batch: this.batch, operator: session.operator, address: ip, action: this.action, target, detail };
    const seq = await this.audit.begin(line).catch((error: unknown) => {
      throw new Refusal(503, `The audit cannot be written (${reasonOf(error)}), so nothing was done with ${target}.`);
    });
    logger.log({ msg: 'an operator acts', seq, ...line });
    try {
      const { outcome, result } = await work();
      await this.end(seq, outcome);
      return result;
    } catch (error) {
      await this.end(seq, error instanceof Refusal ? error.message : 'failed: the outcome is unknown');
      throw error;
    }
  }

  /** The action is done, whether or not its outcome can be written. */
  private async end(seq: string, outcome: string): Promise<void> {
    logger.log({ msg: 'the action ended', seq, outcome });
    await this.audit.end(seq, outcome).catch((error: unknown) => {
      logger.error({ msg: 'the outcome could not be written into the audit', seq, outcome, reason: reasonOf(error) });
    });
  }
}
