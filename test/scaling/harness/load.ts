import { randomUUID } from 'node:crypto';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { openConnection } from '@app/amqp/connection/open-connection';

const EVERY_MS = 50;

/** Publishes commands without a reply at a rate, as another service would. */
export class Load {
  published = 0;
  private rate = 0;
  private due = 0;
  private stopped?: Promise<void>;
  private readonly timer: NodeJS.Timeout;

  private constructor(
    private readonly model: ChannelModel,
    private readonly channel: ConfirmChannel,
  ) {
    this.timer = setInterval(() => this.publish(), EVERY_MS);
  }

  static async start(url: string): Promise<Load> {
    const model = await openConnection({ url, name: 'load' });
    return new Load(model, await model.createConfirmChannel());
  }

  /** @param rate commands a second, from now on */
  change(rate: number): void {
    this.rate = rate;
  }

  /** Messages that no writer has taken yet. */
  async waiting(): Promise<number> {
    return (await this.channel.checkQueue('notifications.commands.0')).messageCount;
  }

  /** Until the broker has every command. */
  stop(): Promise<void> {
    return (this.stopped ??= this.finish());
  }

  private async finish(): Promise<void> {
    clearInterval(this.timer);
    await this.channel.waitForConfirms();
    await this.model.close();
  }

  private publish(): void {
    for (this.due += (this.rate * EVERY_MS) / 1000; this.due >= 1; this.due--) {
      const notificationId = randomUUID();
      const body = {
        organizationId: 'scaling',
        documentId: `document-${this.published++ % 50}`,
        notificationId,
        actionUser: { userId: 'actor' },
        displayHeadlineMessageTemplate: 'Something has happened',
        notifyUsers: [{ userId: 'one' }, { userId: 'two' }],
      };
      this.channel.publish('commands', 'notifications.add.v1', Buffer.from(JSON.stringify(body)), {
        persistent: true,
        mandatory: true,
        messageId: notificationId,
        timestamp: Math.floor(Date.now() / 1000),
        headers: { 'x-api-key': 'demo-key' },
      });
    }
  }
}
