import { readFileSync } from 'node:fs';
import { ALL_EVENTS } from '@app/contracts/all-events';
import type { EventType } from './events';

const packageOf = (directory: string) =>
  JSON.parse(readFileSync(`${directory}package.json`, 'utf8')) as {
    version: string;
    engines: object;
    dependencies: Record<string, string>;
  };

describe('the client', () => {
  it('knows every event', () => {
    // The compiler checks that this is complete.
    const types: Record<EventType, true> = {
      'organization.created.v1': true,
      'user.added.v1': true,
      'document.changed.v1': true,
      'api-key.revoked.v1': true,
      'notification.added.v1': true,
    };
    expect(Object.keys(types).sort()).toEqual(ALL_EVENTS.map(({ type }) => type).sort());
  });

  it('has the version, the engines and the amqplib of the system', () => {
    const [ours, own] = [packageOf(''), packageOf('libs/client/')];
    expect(own.version).toBe(ours.version);
    expect(own.engines).toEqual(ours.engines);
    expect(own.dependencies).toEqual({ amqplib: ours.dependencies.amqplib });
  });
});
