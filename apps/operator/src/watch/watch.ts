import { Addresses } from './addresses';
import type { BrokerQueues } from './broker-queues';
import { History, TICK_MS } from './history';
import { measuresOf, tenantsOf } from './measures';
import { WatchedProcess } from './process';

const LOOK_UP_MS = 10_000;
const MOST_TENANT_SERIES = 200;

/** Asks all processes every 2 s, and keeps what they said for ten minutes. */
export class Watch {
  readonly history = new History();
  /** Apart, because the keys of tenants may change all the time. */
  readonly tenants = new History(MOST_TENANT_SERIES);
  /** Why processes are missing. */
  problems: string[] = [];
  private readonly byAddress = new Map<string, WatchedProcess>();
  private timers: NodeJS.Timeout[] = [];
  private readonly names: Addresses;
  private lookingUp = false;

  /**
   * @param entries `host:port` of operations ports
   * @param broker knows the lengths of queues whose service does not answer, too
   */
  constructor(
    entries: readonly string[],
    private readonly broker: Pick<BrokerQueues, 'queues'>,
  ) {
    this.names = new Addresses(entries);
  }

  /** All processes, in the order of their names. */
  get processes(): WatchedProcess[] {
    const name = ({ service, address }: WatchedProcess) => `${service} ${address}`;
    return [...this.byAddress.values()].sort((a, b) => (name(a) < name(b) ? -1 : 1));
  }

  start(): void {
    void this.lookUp();
    this.timers = [setInterval(() => void this.lookUp(), LOOK_UP_MS), setInterval(() => this.tick(), TICK_MS)];
  }

  stop(): void {
    this.timers.forEach((timer) => clearInterval(timer));
  }

  private async lookUp(): Promise<void> {
    if (this.lookingUp) return;
    this.lookingUp = true;
    const { addresses, problems } = await this.names.find();
    this.lookingUp = false;
    this.problems = problems;
    for (const address of this.byAddress.keys()) if (!addresses.includes(address)) this.byAddress.delete(address);
    for (const address of addresses) {
      if (this.byAddress.has(address)) continue;
      const found = new WatchedProcess(address);
      this.byAddress.set(address, found);
      found.ask();
    }
  }

  private tick(): void {
    const processes = this.processes;
    this.history.add(measuresOf(processes, this.broker.queues));
    this.tenants.add(tenantsOf(processes));
    for (const one of processes) one.ask();
  }
}
