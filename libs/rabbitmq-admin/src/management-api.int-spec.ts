import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { requiredEnv } from '@app/testing/required-env';
import { createTestBroker } from '@app/testing/broker/broker';
import { ManagementApi } from './management-api';

describe(ManagementApi.name, () => {
  it('uses the first node that can be reached', async () => {
    const broker = await createTestBroker();
    const url = requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL').replace(/@/, '@127.0.0.1:2,');
    const api = new ManagementApi(url, broker.url);
    expect(await api.get(`exchanges/${api.vhost}/amq.topic`)).toMatchObject({ name: 'amq.topic' });
    await broker.drop();
  });

  it('names each node with its reason when none can be reached, without the password', async () => {
    const api = new ManagementApi('http://127.0.0.1:2,127.0.0.2:2', 'amqp://user:secret@127.0.0.1');
    await expect(api.get('users')).rejects.toThrow(
      /^the management API cannot be reached: 127\.0\.0\.1:2: ECONNREFUSED; 127\.0\.0\.2:2: ECONNREFUSED$/,
    );
  });

  it('says once that it waits for a node', async () => {
    const onWait = jest.fn();
    const options = { waitUntil: performance.now() + 500, onWait };
    const api = new ManagementApi('http://127.0.0.1:2', 'amqp://user:secret@127.0.0.1', options);
    const reason = 'the management API cannot be reached: 127.0.0.1:2: ECONNREFUSED';
    await expect(api.get('users')).rejects.toThrow(reason);
    expect(onWait.mock.calls).toEqual([[reason]]);
  });

  it('finds no list at another path of the same server', async () => {
    const broker = await createTestBroker();
    const api = new ManagementApi(`${requiredEnv('TEST_RABBITMQ_MANAGEMENT_URL')}/api`, broker.url);
    await expect(api.list('users')).rejects.toThrow('the management API answered 404 to GET users');
    await broker.drop();
  });

  it('says of a node that stands still that it does not answer, before its answer and within it', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    const halting = createServer((_, response) => response.write('[')).listen(0, '127.0.0.1');
    await Promise.all([silent, halting].map((server) => once(server, 'listening')));
    const hosts = [silent, halting].map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
    const api = new ManagementApi(`http://${hosts.join()}`, 'amqp://user:secret@127.0.0.1', { answerMs: 100 });
    await expect(api.list('users')).rejects.toThrow(
      `the management API cannot be reached: ${hosts.map((host) => `${host}: no answer in 0.1 s`).join('; ')}`,
    );
    for (const server of [silent, halting]) {
      server.closeAllConnections();
      server.close();
    }
  });

  it('says that a server answers something else', async () => {
    const server = createServer((_, response) => response.end('<html>')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const api = new ManagementApi(`http://127.0.0.1:${port}`, 'amqp://user:secret@127.0.0.1');
    await expect(api.list('users')).rejects.toThrow('the management API answered no JSON to GET users');
    server.closeAllConnections();
    server.close();
  });
});
