import { connect } from 'node:net';
import { responsesIn, RunningGateway, textOf } from './running-gateway';
import { CALL } from './sent-calls';

describe('the port', () => {
  it('has several connections accepted in an iteration of the event loop, where the system can', async () => {
    const gateway = await RunningGateway.start();
    let accepted = 0;
    gateway.app.getHttpServer().on('connection', () => accepted++);
    const clients = Array.from({ length: 64 }, () => connect(gateway.port, '127.0.0.1').on('error', () => undefined));
    const counts: number[] = [];
    for (let before = 0; before < clients.length; before = accepted) {
      await new Promise((resolve) => setImmediate(resolve));
      counts.push(accepted - before);
    }
    const canShare = process.platform === 'linux' && Number(process.versions.node.split('.')[0]) >= 22;
    expect(Math.max(...counts) > 1).toBe(canShare);
    for (const client of clients) client.destroy();
    await gateway.stop();
  });

  it('is closed when the connections that wait there are accepted, and their calls are answered', async () => {
    const gateway = await RunningGateway.start();
    const clients = Array.from({ length: 50 }, () => connect(gateway.port, '127.0.0.1').on('error', () => undefined));
    const answers = clients.map(textOf);
    for (const client of clients) client.write(CALL);
    const closed = gateway.stop();
    const statuses = (await Promise.all(answers)).map((text) => responsesIn(text).map(({ status }) => status));
    expect(statuses).toEqual(clients.map(() => [200]));
    await closed;
  });

  it('is not shared with another process', async () => {
    const gateway = await RunningGateway.start();
    await expect(RunningGateway.start({ port: gateway.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await gateway.stop();
  });
});
