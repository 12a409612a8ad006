import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { ManagementApi } from '../management-api';
import { boundEverybody } from './limits';

describe(boundEverybody, () => {
  it('says which setting of a broker refuses operator policies, as Amazon MQ does', async () => {
    // RabbitMQ 3.10 has no such setting.
    const server = createServer((_, response) => response.writeHead(405).end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const bound = boundEverybody(new ManagementApi(`http://${host}`, 'amqp://user:secret@127.0.0.1'));
    await expect(bound).rejects.toThrow(
      /^the management API answered 405 to PUT operator-policies\/%2F\/collaboration.replies: .* management\.restrictions\.operator_policy_changes\.disabled = false only$/,
    );
    server.closeAllConnections();
    server.close();
  });
});
