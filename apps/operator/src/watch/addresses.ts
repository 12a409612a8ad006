import { lookup } from 'node:dns/promises';

/** Most processes that are watched. */
const MOST_PROCESSES = 100;

export interface Found {
  /** `ip:port` of each process, in the order of the configuration. */
  addresses: string[];
  /** Names without an address, and what is beyond the limit. */
  problems: string[];
}

/** Addresses of all processes. A name that cannot be resolved stands for the addresses that it had before. */
export class Addresses {
  private readonly byEntry = new Map<string, string[]>();

  /** @param entries `host:port` */
  constructor(
    private readonly entries: readonly string[],
    private readonly lookUp: typeof lookup = lookup,
  ) {}

  /** Looks all names up. Never rejects. */
  async find(): Promise<Found> {
    const problems: string[] = [];
    await Promise.all(
      this.entries.map(async (entry) => {
        const { hostname, port } = new URL(`http://${entry}`);
        try {
          const addresses = await this.addressesOf(hostname);
          // URL leaves the default port out.
          this.byEntry.set(
            entry,
            addresses.map((address) => `${address}:${port || 80}`),
          );
        } catch (error) {
          problems.push(`${hostname} has no address (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
        }
      }),
    );
    const all = [...new Set(this.entries.flatMap((entry) => this.byEntry.get(entry) ?? []))];
    if (all.length > MOST_PROCESSES) problems.push(`${all.length} processes were found, and only ${MOST_PROCESSES} are watched`);
    return { addresses: all.slice(0, MOST_PROCESSES), problems };
  }

  /** Addresses of one family: a process has both, and would count twice. */
  private async addressesOf(hostname: string): Promise<string[]> {
    const all = await this.lookUp(hostname.replace(/^\[|\]$/g, ''), { all: true });
    const family = all.some((one) => one.family === 4) ? 4 : 6;
    const some = all.filter((one) => one.family === family);
    return some.map(({ address }) => (family === 6 ? `[${address}]` : address)).sort();
  }
}
