import { lookup } from 'node:dns/promises';

/** Most processes that are watched. */
const MOST_PROCESSES = 100;

export interface Found {
  /** `ip:port` of each process, in the order of the configuration. */
  addresses: string[];
  /** Names without an address, and what is beyond the limit. */
  problems: string[];
}

/**
 * Addresses of all processes. A name stands for its addresses of one family: a process has both, and would count twice.
 *
 * @param entries `host:port`
 */
export async function addressesOf(entries: readonly string[], lookUp: typeof lookup = lookup): Promise<Found> {
  const problems: string[] = [];
  const addresses = await Promise.all(
    entries.map(async (entry) => {
      const { hostname, port } = new URL(`http://${entry}`);
      // URL leaves the default port out.
      const end = `:${port || 80}`;
      try {
        const all = await lookUp(hostname.replace(/^\[|\]$/g, ''), { all: true });
        const family = all.some(({ family }) => family === 4) ? 4 : 6;
        return all.filter((one) => one.family === family).map(({ address }) => (family === 6 ? `[${address}]` : address) + end);
      } catch (error) {
        problems.push(`${hostname} has no address (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`);
        return [];
      }
    }),
  );
  const all = [...new Set(addresses.map((some) => some.sort()).flat())];
  if (all.length > MOST_PROCESSES) problems.push(`${all.length} processes were found, and only ${MOST_PROCESSES} are watched`);
  return { addresses: all.slice(0, MOST_PROCESSES), problems };
}
