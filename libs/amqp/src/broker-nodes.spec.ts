import { BrokerNodes } from './broker-nodes';
import { addressText, parseBrokerUrl } from '@app/runtime/broker-url';

const THREE = parseBrokerUrl('amqp://127.0.0.1,127.0.0.2,127.0.0.3:5673').addresses;
const labels = async (nodes: BrokerNodes) => (await nodes.order()).nodes.map(({ label }) => label);

describe(BrokerNodes.name, () => {
  it('spreads the connections of a process evenly: each node is the first of as many', async () => {
    const first = await Promise.all(Array.from({ length: 30 }, async () => (await labels(new BrokerNodes(THREE)))[0]));
    for (const address of THREE) expect(first.filter((label) => label === addressText(address))).toHaveLength(10);
  });

  it('tries every node, the others in any order, so that those of a lost node spread over all of them', async () => {
    const nodes = new BrokerNodes(THREE);
    const seconds = new Set<string>();
    const [first] = await labels(nodes);
    for (let round = 0; round < 100; round++) {
      const order = await labels(nodes);
      expect(new Set(order)).toEqual(new Set(THREE.map(addressText)));
      expect(order[0]).toBe(first);
      seconds.add(order[1]);
    }
    expect(seconds.size).toBe(2);
  });

  it('tries a node that failed after the others, the latest failure last', async () => {
    const nodes = new BrokerNodes(THREE);
    const {
      nodes: [first, second],
    } = await nodes.order();
    nodes.failed(first);
    nodes.failed(second);
    const order = await labels(nodes);
    expect(order.slice(1)).toEqual([first.label, second.label]);
  });

  it('spreads over the addresses of one host name, whatever their order in the answer, and goes on without a name that is unknown', async () => {
    const cluster = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
    let turn = 0;
    const resolve = async (host: string) => {
      if (host !== 'cluster') throw new Error(`getaddrinfo ENOTFOUND ${host}`);
      return [...cluster.slice(++turn % 3), ...cluster.slice(0, turn % 3)];
    };
    const first = await Promise.all(
      Array.from({ length: 30 }, async () => {
        return (await new BrokerNodes(parseBrokerUrl('amqp://cluster').addresses, resolve).order()).nodes[0];
      }),
    );
    for (const ip of cluster) expect(first.filter((node) => node.ip === ip)).toHaveLength(10);
    expect(first[0]).toMatchObject({ address: 'cluster:5672', label: `cluster:5672 (${first[0].ip})`, host: 'cluster' });
    for (let round = 0; round < 2; round++) {
      const { nodes, failures } = await new BrokerNodes(parseBrokerUrl('amqp://cluster,unknown').addresses, resolve).order();
      expect(nodes.map(({ ip }) => ip).sort()).toEqual(cluster);
      expect(failures).toEqual([{ label: 'unknown:5672', error: new Error('getaddrinfo ENOTFOUND unknown') }]);
    }
  });
});
