import { Transport, type RmqOptions } from '@nestjs/microservices';
import { TypeOrmModule } from '@nestjs/typeorm';
import { QUEUE } from './contract';
import { ApiKey, Notification, Recipient } from './entities';

const required = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};

export const port = () => Number(required('PORT'));

export const database = () =>
  TypeOrmModule.forRoot({
    type: 'postgres',
    url: required('DATABASE_URL'),
    entities: [ApiKey, Notification, Recipient],
    poolSize: 20,
  });

const rabbit = {
  urls: [required('AMQP_URL')],
  queue: QUEUE,
  queueOptions: { durable: true },
  persistent: true,
  // Without it an answer of 4 KB and more waits for the timer of TCP.
  socketOptions: { connectionOptions: { noDelay: true } },
};

/** Replies come over direct reply-to, which knows no acknowledgement. */
export const asClient: RmqOptions = { transport: Transport.RMQ, options: { ...rabbit, noAck: true } };
export const asServer: RmqOptions = { transport: Transport.RMQ, options: { ...rabbit, noAck: false, prefetchCount: 256 } };
