import { randomInt } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { addressText, type BrokerAddress } from '@app/runtime/settings/broker-url';
import { within } from '@app/runtime/within';

/** One IP address of one address of the list. */
export interface BrokerNode {
  /** `host:port` of the list. */
  address: string;
  /** For log lines: the address, with the IP address when the host name has several. */
  label: string;
  host: string;
  port: number;
  ip: string;
}

/** An address that could not be used, and why. */
export interface Failure {
  label: string;
  error: Error;
}

/** @returns all IP addresses of a host name @throws Error when it has none */
export type Resolve = (host: string) => Promise<string[]>;

const RESOLVE_TIMEOUT_MS = 2500;

/** How long a node that failed is tried after the others. */
const AVOIDED_MS = 30_000;

/**
 * Connections of a process have the same order of nodes, and processes have different ones. So the end of a node concerns few processes, and a
 * process answers at the node where it consumes.
 */
const PREFERENCE = randomInt(2 ** 32);

const resolveAll: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** The nodes that one connection may use, and their order. */
export class BrokerNodes {
  /** Nodes that were found at the latest attempt to connect. */
  count = 0;
  /** Time of `performance.now()` of the latest failure. */
  private readonly failedAt = new Map<string, number>();

  /**
   * @param options.preference number of the order of nodes. Default: one for the process
   * @param options.backwards turns the order round: such a connection is at another node than the others while two nodes can be used
   */
  constructor(
    readonly addresses: readonly BrokerAddress[],
    private readonly options: { preference?: number; backwards?: boolean } = {},
    private readonly resolve: Resolve = resolveAll,
  ) {}

  /**
   * Resolves the host names.
   *
   * @returns the nodes in the order in which to try them: the preferred one, the others, and last those that failed within 30 s
   */
  async order(): Promise<{ nodes: BrokerNode[]; failures: Failure[] }> {
    const failures: Failure[] = [];
    const found = await Promise.all(this.addresses.map((address) => this.nodesOf(address, failures)));
    const ordered = this.inOrder(found).flat();
    this.count = ordered.length;
    const now = performance.now();
    for (const [label, at] of this.failedAt) if (now - at > AVOIDED_MS) this.failedAt.delete(label);
    const failedAt = ({ label }: BrokerNode) => this.failedAt.get(label) ?? -Infinity;
    return { nodes: ordered.sort((a, b) => (failedAt(a) === failedAt(b) ? 0 : failedAt(a) - failedAt(b))), failures };
  }

  /** @returns the first node of the order; undefined while its name is unknown */
  async preferred(): Promise<BrokerNode | undefined> {
    const found = await Promise.all(this.addresses.map((address) => this.nodesOf(address, [])));
    return this.inOrder(found)[0].at(0);
  }

  /** The first address of the order, whatever its name stands for now. */
  get preferredAddress(): string {
    return addressText(this.inOrder(this.addresses.map((address) => [address]))[0][0]);
  }

  /** The node could not be connected to, or its connection was lost. */
  failed({ label }: BrokerNode): void {
    this.failedAt.set(label, performance.now());
  }

  /** First by address, then by node, so that a name that is unknown for now changes nothing in the order of the others. */
  private inOrder<T>(found: readonly T[][]): T[][] {
    const { preference = PREFERENCE, backwards } = this.options;
    const [addresses, rest] = permuted(found, preference);
    const ordered = addresses.map((nodes) => permuted(nodes, rest)[0]);
    return backwards ? ordered.reverse().map((nodes) => nodes.reverse()) : ordered;
  }

  private async nodesOf({ host, port }: BrokerAddress, failures: Failure[]): Promise<BrokerNode[]> {
    const address = addressText({ host, port });
    let ips: string[] = [];
    let error = new Error('its name was not resolved in time');
    if (isIP(host)) ips = [host];
    else
      await within(
        RESOLVE_TIMEOUT_MS,
        this.resolve(host).then(
          // Name servers change the order with each answer.
          (found) => (ips = found.sort()),
          (reason: unknown) => (error = reason as Error),
        ),
      );
    if (ips.length === 0) failures.push({ label: address, error });
    return ips.map((ip) => ({ address, label: ips.length > 1 ? `${address} (${ip})` : address, host, port, ip }));
  }
}

/** @returns the items in the order with this number, and what is left of the number */
function permuted<T>(items: readonly T[], number: number): [T[], number] {
  const left = [...items];
  const order: T[] = [];
  while (left.length > 0) {
    const choices = left.length;
    order.push(...left.splice(number % choices, 1));
    number = Math.floor(number / choices);
  }
  return [order, number];
}
