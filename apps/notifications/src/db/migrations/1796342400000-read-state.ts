import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The read state of users: everything up to a moment, with exceptions. */
export class ReadState1796342400000 implements MigrationInterface {
  readonly name = 'ReadState1796342400000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE read_marks (
        organization bigint NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        read_up_to bigint NOT NULL,
        asked bigint NOT NULL,
        CONSTRAINT read_marks_pkey PRIMARY KEY (organization, user_id)
      )`);
    await runner.query(`
      CREATE TABLE readings (
        organization bigint NOT NULL,
        user_id text COLLATE "C" NOT NULL,
        "timestamp" bigint NOT NULL,
        notification_id text COLLATE "C" NOT NULL,
        read boolean NOT NULL,
        asked bigint NOT NULL,
        CONSTRAINT readings_pkey PRIMARY KEY (organization, user_id, "timestamp", notification_id)
      )`);
    await runner.query(`
      CREATE INDEX readings_unread ON readings (organization, user_id, asked, "timestamp", notification_id) WHERE NOT read`);
    await runner.query(`CREATE INDEX readings_by_age ON readings ("timestamp", organization)`);
    // By hand, so that no statistics make the planner look for one reading of a user among those of all users.
    await runner.query(`
      ALTER TABLE readings ALTER organization SET (n_distinct = 1), ALTER user_id SET (n_distinct = 100),
        ALTER "timestamp" SET (n_distinct = 100)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE readings, read_marks');
  }
}
