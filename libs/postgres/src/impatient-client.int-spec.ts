import { once } from 'node:events';
import type { Socket } from 'node:net';
import { requiredEnv } from '@app/testing/required-env';
import { TcpLink } from '@app/testing/tcp-link';
import { DatabaseServers } from './database-servers';
import { isDatabaseAway } from './errors';
import { ImpatientClient } from './impatient-client';

describe('ImpatientClient', () => {
  let link: TcpLink;
  let client: ImpatientClient;

  beforeEach(async () => {
    link = await TcpLink.to(requiredEnv('TEST_DATABASE_URL'));
    client = new ImpatientClient({ servers: new DatabaseServers(link.url) });
    await client.connect();
  });
  afterEach(() => link.close());

  it.each([0, 2])('gives up on a silent server, also after %d idle timeouts', async (times) => {
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    for (let time = 0; time < times; time++) {
      await once(stream, 'timeout');
      expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    }
    link.silence();
    const error: unknown = await client.query('SELECT 1').catch((reason: unknown) => reason);
    expect(isDatabaseAway(error)).toBe(true);
  });
});
