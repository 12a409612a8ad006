import { connect } from 'node:net';
import { RunningGateway } from './running-gateway';

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

  it('is not shared with another process', async () => {
    const gateway = await RunningGateway.start();
    await expect(RunningGateway.start({ port: gateway.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await gateway.stop();
  });
});
