import { Logger } from '@nestjs/common';
import type { Notification, PoolClient } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { hasNoRoom } from '../errors';

/** The connection on which a relay looks at its table, and listens for NOTIFY when it has a channel. */
export class OutboxListener {
  private readonly logger = new Logger('Outbox');
  private listening?: QueryRunner;
  private ignore?: () => void;
  private hasToldOfNoRoom = false;

  /** @param channel undefined when nobody notifies */
  constructor(
    private readonly dataSource: DataSource,
    private readonly channel: string | undefined,
    private readonly notified: () => void,
  ) {}

  /**
   * Each look asks on the connection that listens: one that was lost without a word is noticed, and the next look listens on another. Where the server
   * has room for one connection only, it is left to statements, and nothing listens.
   */
  async connection(): Promise<Pick<DataSource, 'query'>> {
    const { channel } = this;
    if (channel === undefined) return this.dataSource;
    if (this.listening && !this.listening.isReleased) return this.listening;
    const runner = this.dataSource.createQueryRunner();
    let client: PoolClient | undefined;
    try {
      client = (await runner.connect()) as PoolClient;
      const onNotification = (notification: Notification) => notification.channel === channel && this.notified();
      client.on('notification', onNotification);
      // The pool hands the connection on, with its listeners.
      this.ignore = () => client?.off('notification', onNotification);
      await this.openAnother();
      await client.query(`LISTEN ${client.escapeIdentifier(channel)}`);
      this.hasToldOfNoRoom = false;
      return (this.listening = runner);
    } catch (error) {
      this.ignore?.();
      await runner.release();
      if (!hasNoRoom(error)) throw error;
      if (client) this.tellOfNoRoom();
      return this.dataSource;
    }
  }

  private tellOfNoRoom(): void {
    if (!this.hasToldOfNoRoom)
      this.logger.warn({
        msg: 'nothing listens for changes by tools, and they are published up to 10 s late: the database has room for one connection only',
      });
    this.hasToldOfNoRoom = true;
  }

  private async openAnother(): Promise<void> {
    const another = this.dataSource.createQueryRunner();
    try {
      await another.connect();
    } finally {
      await another.release();
    }
  }

  async stop(): Promise<void> {
    this.ignore?.();
    await this.listening?.release();
  }
}
