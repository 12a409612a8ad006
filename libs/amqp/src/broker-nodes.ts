import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { addressText, type BrokerAddress } from '@app/runtime/broker-url';
import { within } from './within';

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

/** The connections of a process prefer one node after the other. The first one is random, so that processes spread too. */
let nextPreference = Math.floor(Math.random() * 0x10000);

const resolveAll: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);

/** The nodes that one connection may use, and their order. */
export class BrokerNodes {
  private readonly preference = nextPreference++;
  /** Time of `performance.now()` of the latest failure. */
  private readonly failedAt = new Map<string, number>();

  constructor(
    readonly addresses: readonly BrokerAddress[],
    private readonly resolve: Resolve = resolveAll,
  ) {}

  /**
   * Resolves the host names.
   *
   * @returns the nodes in the order in which to try them: the preferred one, the others in random order, and last those that failed within 30 s
   */
  async order(): Promise<{ nodes: BrokerNode[]; failures: Failure[] }> {
    const failures: Failure[] = [];
    const found = await Promise.all(this.addresses.map((address) => this.nodesOf(address, failures)));
    const preferred = this.choose(found);
    const ordered = [...(preferred ? [preferred] : []), ...shuffled(found.flat().filter((node) => node !== preferred))];
    const now = performance.now();
    for (const [label, at] of this.failedAt) if (now - at > AVOIDED_MS) this.failedAt.delete(label);
    const failedAt = ({ label }: BrokerNode) => this.failedAt.get(label) ?? -Infinity;
    return { nodes: ordered.sort((a, b) => (failedAt(a) === failedAt(b) ? 0 : failedAt(a) - failedAt(b))), failures };
  }

  /** @returns the preferred node; undefined while its name is unknown */
  async preferred(): Promise<BrokerNode | undefined> {
    return this.choose(await Promise.all(this.addresses.map((address) => this.nodesOf(address, []))));
  }

  /** The node could not be connected to, or its connection was lost. */
  failed({ label }: BrokerNode): void {
    this.failedAt.set(label, performance.now());
  }

  /** First an address, then one of its nodes, so that a name that is unknown for now changes nothing for the connections to others. */
  private choose(found: readonly BrokerNode[][]): BrokerNode | undefined {
    const nodes = found[this.preference % found.length];
    return nodes[Math.floor(this.preference / found.length) % nodes.length];
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

function shuffled<T>(items: readonly T[]): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(Math.floor(Math.random() * rest.length), 1)[0]);
}
