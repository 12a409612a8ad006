import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Options } from 'amqplib';
import type { CloudEvent } from '@app/contracts/event';

export const FIXTURES = join(process.cwd(), 'libs/contracts/fixtures');

interface Fixture {
  /** Its file, for test messages. */
  file: string;
  /** Routing key. */
  pattern: string;
  /** Fixtures of a kind are played in this order, because later ones depend on earlier ones. */
  order: number;
  properties: Options.Publish & { headers: Record<string, string> };
}

/** A message that a process of a released version published, and its reply. */
export interface Exchange extends Fixture {
  request: Record<string, unknown>;
  reply: { headers: Record<string, string>; body: unknown };
}

/** An event that a process of a released version published. */
export interface EventFixture extends Fixture {
  event: CloudEvent<Record<string, unknown>>;
}

const all = readdirSync(FIXTURES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name: pattern }) =>
    readdirSync(join(FIXTURES, pattern)).map((name) => {
      const file = `${pattern}/${name}`;
      return { ...(JSON.parse(readFileSync(join(FIXTURES, file), 'utf8')) as Exchange | EventFixture), file, pattern };
    }),
  )
  .sort((one, other) => one.order - other.order);

export const EXCHANGES = all.filter((one): one is Exchange => 'request' in one);
export const EVENTS = all.filter((one): one is EventFixture => 'event' in one);
