import type { AddressInfo } from 'node:net';
import { addressToListenOn } from './listen-address';
import { startOperationsServer } from '../operations-server';
import { Readiness } from '../readiness';

describe('the address that a process listens on', () => {
  it('is every IPv4 address on a machine without IPv6', async () => {
    await expect(addressToListenOn('::', async () => false)).resolves.toBe('0.0.0.0');
    await expect(addressToListenOn('::', async () => true)).resolves.toBe('::');
  });

  it.each(['127.0.0.1', '::1', 'localhost'])('is %s when that is configured', async (host) => {
    await expect(addressToListenOn(host, async () => false)).resolves.toBe(host);
  });

  it.each(['127.0.0.1', '::'])('is HEALTH_HOST (%s) for operators, and answers there', async (healthHost) => {
    const { server, port } = await startOperationsServer(new Readiness(), { healthPort: 0, healthHost });
    try {
      const expected = await addressToListenOn(healthHost);
      expect((server.address() as AddressInfo).address).toBe(expected);
      const { status } = await fetch(`http://127.0.0.1:${port}/health/live`, { headers: { connection: 'close' } });
      expect(status).toBe(200);
    } finally {
      server.close();
    }
  });
});
