import type { DataSource } from 'typeorm';

/** An action on one object: by whom, what, on which. Never with a secret or a body. */
export interface Action {
  /** Actions of one form have the same. */
  batch: string;
  operator: string;
  /** IP address of the request. */
  address: string;
  action: string;
  target: string;
  detail: string;
}

export interface AuditLine extends Action {
  seq: string;
  begunAt: Date;
  /** Null while the action runs, and for ever when the process ended meanwhile. */
  outcome: string | null;
  endedAt: Date | null;
}

const COLUMNS = 'seq, batch, begun_at AS "begunAt", operator, address, action, target, detail, outcome, ended_at AS "endedAt"';

/** The audit: a line is written before its action, and gets the outcome afterwards. No line is ever deleted. */
export class AuditRepository {
  constructor(private readonly dataSource: DataSource) {}

  /** @returns the number of the line */
  async begin({ batch, operator, address, action, target, detail }: Action): Promise<string> {
    const [row] = await this.dataSource.query<{ seq: string }[]>(
      'INSERT INTO audit (batch, operator, address, action, target, detail) VALUES ($1, $2, $3, $4, $5, $6) RETURNING seq',
      [batch, operator, address, action, target, detail],
    );
    return row.seq;
  }

  async end(seq: string, outcome: string): Promise<void> {
    await this.dataSource.query('UPDATE audit SET outcome = $2, ended_at = now() WHERE seq = $1', [seq, outcome]);
  }

  /** Lines, newest first. @param before only lines with a smaller number */
  async page(limit: number, before?: string): Promise<AuditLine[]> {
    return this.dataSource.query<AuditLine[]>(
      `SELECT ${COLUMNS} FROM audit WHERE seq < coalesce($2, 9223372036854775807) ORDER BY seq DESC LIMIT $1`,
      [limit, before ?? null],
    );
  }

  /** Lines of one form, oldest first. */
  async batch(batch: string): Promise<AuditLine[]> {
    return this.dataSource.query<AuditLine[]>(`SELECT ${COLUMNS} FROM audit WHERE batch = $1 ORDER BY seq`, [batch]);
  }
}
