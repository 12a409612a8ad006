// The plain build, service: a handler for each message, `save`, an acknowledgement when it is done.
import 'reflect-metadata';
import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, MessagePattern, Payload, RmqContext, type MicroserviceOptions } from '@nestjs/microservices';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import type { Channel, Message } from 'amqplib';
import type { Repository } from 'typeorm';
import { ADD, GET, type AddNotificationDto, type GetNotificationsDto, type OfTenant } from './contract';
import { Notification, Recipient } from './entities';
import { asServer, database } from './settings';

const ADDED = 'Notification added successfully.';

@Controller()
class NotificationsHandler {
  constructor(
    @InjectRepository(Notification) private readonly notifications: Repository<Notification>,
    @InjectRepository(Recipient) private readonly recipients: Repository<Recipient>,
  ) {}

  @MessagePattern(ADD)
  async add(@Payload() { apiKey, request }: OfTenant<AddNotificationDto>, @Ctx() context: RmqContext): Promise<object> {
    const { organizationId, documentId, ...content } = request;
    const whose = { apiKey, organizationId, timestamp: Date.now() };
    const recipients = (request.notifyUsers ?? []).map(({ userId }) => ({ ...whose, userId }));
    try {
      await this.notifications.save({ ...whose, documentId, content, recipients });
    } finally {
      acknowledge(context);
    }
    return { result: { status: 'success', message: ADDED, data: { success: true, message: ADDED } } };
  }

  @MessagePattern(GET)
  async get(@Payload() { apiKey, request }: OfTenant<GetNotificationsDto>, @Ctx() context: RmqContext): Promise<object> {
    const { organizationId, userId, pageSize = 1000 } = request;
    try {
      const found = await this.recipients.find({
        where: { apiKey, organizationId, userId },
        order: { timestamp: 'DESC', notificationId: 'DESC' },
        relations: { notification: true },
        take: pageSize,
      });
      const data = found.map(({ notification }) => toItem(notification));
      return { result: { status: 'success', message: 'Notification(s) retrieved successfully.', data } };
    } finally {
      acknowledge(context);
    }
  }
}

function acknowledge(context: RmqContext): void {
  (context.getChannelRef() as Channel).ack(context.getMessage() as Message);
}

function toItem({ id, apiKey, organizationId, documentId, timestamp, content }: Notification): object {
  const { notifyUsers = [], ...shown } = content;
  const named = Object.fromEntries(notifyUsers.map(({ userId }) => [userId, true]));
  return {
    id,
    notificationSource: 'custom',
    notificationSourceData: {},
    displayBodyMessage: '',
    ...shown,
    metadata: { apiKey, organizationId, documentId },
    notifyUsers: named,
    notifyUsersByUserId: named,
    timestamp: Number(timestamp),
  };
}

@Module({
  imports: [database(), TypeOrmModule.forFeature([Notification, Recipient])],
  controllers: [NotificationsHandler],
})
class NotificationsModule {}

async function main() {
  const options: MicroserviceOptions = asServer;
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(NotificationsModule, {
    ...options,
    logger: ['warn', 'error'],
  });
  await app.listen();
}

void main();
