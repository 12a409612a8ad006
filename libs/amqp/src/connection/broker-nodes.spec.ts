import { BrokerNodes } from './broker-nodes';
import { addressText, parseBrokerUrl } from '@app/runtime/settings/broker-url';

const THREE = parseBrokerUrl('amqp://127.0.0.1,127.0.0.2,127.0.0.3:5673').addresses;
const labels = async (nodes: BrokerNodes) => (await nodes.order()).nodes.map(({ label }) => label);

describe(BrokerNodes.name, () => {
  it('has as many orders as there are, each as often, so that the processes of a lost node spread over the others', async () => {
    const orders = await Promise.all(
      Array.from({ length: 30 }, (_, number) => labels(new BrokerNodes(THREE, { preference: number }))),
    );
    const seen = new Map<string, number>();
    for (const order of orders) {
      expect(new Set(order)).toEqual(new Set(THREE.map(addressText)));
      seen.set(order.join(), (seen.get(order.join()) ?? 0) + 1);
    }
    expect([...seen.values()]).toEqual([5, 5, 5, 5, 5, 5]);
  });

  it('has the same order for all connections of a process', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => labels(new BrokerNodes(THREE))));
    for (const order of all) expect(order).toEqual(all[0]);
  });

  it('has another first node backwards, also when one node of the list has failed or is unknown', async () => {
    for (let number = 0; number < 6; number++) {
      const [nodes, backwards] = [false, true].map((way) => new BrokerNodes(THREE, { preference: number, backwards: way }));
      const order = await labels(nodes);
      expect(await labels(backwards)).toEqual(order.toReversed());
      expect((await backwards.preferred())?.label).toBe(order.at(-1));
      const [first] = (await nodes.order()).nodes;
      for (const one of [nodes, backwards]) one.failed(first);
      expect((await labels(nodes))[0]).not.toBe((await labels(backwards))[0]);
    }
  });

  it('tries a node that failed after the others for half a minute, the latest failure last', async () => {
    const nodes = new BrokerNodes(THREE);
    const clock = jest.spyOn(performance, 'now').mockReturnValue(100);
    const {
      nodes: [first, second, third],
    } = await nodes.order();
    nodes.failed(first);
    nodes.failed(second);
    clock.mockReturnValue(30_100);
    expect(await labels(nodes)).toEqual([third.label, first.label, second.label]);
    clock.mockReturnValue(30_101);
    expect(await labels(nodes)).toEqual([first.label, second.label, third.label]);
    clock.mockRestore();
  });

  it('spreads over the addresses of one host name, whatever their order in the answer, and goes on without a name that is unknown', async () => {
    const cluster = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
    let turn = 0;
    const resolve = async (host: string) => {
      if (host !== 'cluster') throw new Error(`getaddrinfo ENOTFOUND ${host}`);
      return [...cluster.slice(++turn % 3), ...cluster.slice(0, turn % 3)];
    };
    const first = await Promise.all(
      Array.from({ length: 30 }, async (_, number) => {
        return (await new BrokerNodes(parseBrokerUrl('amqp://cluster').addresses, { preference: number }, resolve).order())
          .nodes[0];
      }),
    );
    for (const ip of cluster) expect(first.filter((node) => node.ip === ip)).toHaveLength(10);
    expect(first[0]).toMatchObject({ address: 'cluster:5672', label: `cluster:5672 (${first[0].ip})`, host: 'cluster' });
    for (let round = 0; round < 2; round++) {
      const { nodes, failures } = await new BrokerNodes(
        parseBrokerUrl('amqp://cluster,unknown').addresses,
        { preference: round },
        resolve,
      ).order();
      expect(nodes.map(({ ip }) => ip).sort()).toEqual(cluster);
      expect(failures).toEqual([{ label: 'unknown:5672', error: new Error('getaddrinfo ENOTFOUND unknown') }]);
    }
  });
});
