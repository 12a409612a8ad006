import { FaultProxy } from '../../../../test/faults/harness/fault-proxy';

/** A broker behind several proxies, each of which acts as a node with an address of its own. */
export class BrokerLinks {
  private constructor(
    readonly proxies: readonly FaultProxy[],
    /** The given URL with the addresses of the proxies. */
    readonly url: string,
  ) {}

  static async to(target: string, count: number): Promise<BrokerLinks> {
    const proxies = await Promise.all(Array.from({ length: count }, () => FaultProxy.to(target)));
    const hosts = proxies.map((proxy) => new URL(proxy.through(target)).host);
    return new BrokerLinks(proxies, target.replace(`@${new URL(target).host}`, `@${hosts.join()}`));
  }

  /** `host:port` of a node. */
  address(proxy: FaultProxy): string {
    return new URL(proxy.through(this.url.replace(/,[^/]*/, ''))).host;
  }

  /** The node of a connection, from what it says about its address. */
  nodeOf({ address }: { address: string }): FaultProxy {
    const found = this.proxies.find((proxy) => this.address(proxy) === address);
    if (!found) throw new Error(`no node has the address ${address}`);
    return found;
  }

  /** Ends a node like a process that is killed: its connections end, and its port refuses. */
  kill(proxy: FaultProxy): void {
    proxy.refusing = true;
    proxy.cut('reset');
  }

  /** Ends all faults. */
  heal(): void {
    for (const proxy of this.proxies) proxy.heal();
  }

  async close(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}
