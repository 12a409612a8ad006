interface Turns {
  /** Columns of each row. */
  columns: string;
  /** Columns that the API key depends on. */
  subject: string;
  /** Expression of them for the API key. It is evaluated for as many rows of each subject as are locked at most. */
  key: string;
  condition: string;
  /** Parameters: most rows that are locked, and most rows that are looked at, the oldest ones. */
  most: string;
  among: string;
}

/**
 * Locks rows of `outbox` of which API keys take turns: the oldest one of each key, then the second one of each, and so on. Within a turn the order is
 * random, because with more keys than rows the same keys would always be first. `number` has the order. Each row is looked up by itself, and OFFSET 0
 * keeps it so.
 */
export const inTurns = ({ columns, subject, key, condition, most, among }: Turns): string => `
    SELECT o.*, t.number FROM (
      SELECT seq, row_number() OVER (ORDER BY turn, random()) AS number FROM (
        SELECT seq, row_number() OVER (PARTITION BY ${key} ORDER BY seq) AS turn FROM (
          SELECT * FROM (
            SELECT seq, ${subject}, row_number() OVER (PARTITION BY ${subject} ORDER BY seq) AS turn FROM (
              SELECT seq, ${subject} FROM outbox WHERE ${condition} ORDER BY seq LIMIT ${among}
            ) looked
          ) numbered WHERE turn <= ${most} OFFSET 0
        ) first
      ) turns ORDER BY number OFFSET 0
    ) t CROSS JOIN LATERAL (SELECT ${columns} FROM outbox WHERE outbox.seq = t.seq FOR UPDATE SKIP LOCKED) o LIMIT ${most}`;
