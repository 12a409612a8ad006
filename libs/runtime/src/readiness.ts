/** Checks one dependency. Returns undefined when it is usable, else the reason without secrets. */
export type ReadinessCheck = () => string | undefined | Promise<string | undefined>;

export interface ReadinessReport {
  status: 'ok' | 'unavailable';
  checks: Record<string, string>;
}

const CHECK_TIMEOUT_MS = 2000;

/** Readiness of a process: all its dependencies. Not ready while it drains, so that it gets no new work. */
export class Readiness {
  draining = false;
  private readonly checks = new Map<string, ReadinessCheck>();

  add(name: string, check: ReadinessCheck): void {
    this.checks.set(name, check);
  }

  async report(): Promise<ReadinessReport> {
    const entries = await Promise.all([...this.checks].map(async ([name, check]) => [name, await answerOf(check)] as const));
    if (this.draining) entries.push(['process', 'is shutting down']);
    return {
      status: entries.every(([, answer]) => answer === 'up') ? 'ok' : 'unavailable',
      checks: Object.fromEntries(entries),
    };
  }
}

async function answerOf(check: ReadinessCheck): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve('does not answer'), CHECK_TIMEOUT_MS);
  });
  try {
    return (await Promise.race([check(), timeout])) ?? 'up';
  } catch {
    return 'is unreachable';
  } finally {
    clearTimeout(timer);
  }
}
