import { within } from './within';

/** Checks one dependency. Returns undefined when it is usable, else the reason without secrets. */
export type ReadinessCheck = () => string | undefined | Promise<string | undefined>;

export interface ReadinessReport {
  status: 'ok' | 'unavailable';
  /** `up` or the reason, by dependency. */
  checks: Record<string, string>;
  /** Unusable dependencies of a process that is ready without them. Absent when there are none. */
  away?: { name: string; reason: string }[];
}

export interface DependencyOptions {
  /** Whether the process is not ready without it. While false, an unusable dependency is only reported. Default: always true. */
  required?: () => boolean;
}

const CHECK_TIMEOUT_MS = 2000;

/** Readiness of a process: its required dependencies. Not ready while it drains, so that it gets no new work. */
export class Readiness {
  draining = false;
  private readonly dependencies = new Map<string, { check: ReadinessCheck; required: () => boolean }>();

  add(name: string, check: ReadinessCheck, { required = () => true }: DependencyOptions = {}): void {
    this.dependencies.set(name, { check, required });
  }

  async report(): Promise<ReadinessReport> {
    const answers = await this.answers();
    const unusable = answers.filter(({ reason }) => reason !== undefined);
    const away = unusable.filter(({ name }) => !this.dependencies.get(name)?.required());
    if (this.draining) answers.push({ name: 'process', reason: 'is shutting down' });
    return {
      status: unusable.length === away.length && !this.draining ? 'ok' : 'unavailable',
      checks: Object.fromEntries(answers.map(({ name, reason }) => [name, reason ?? 'up'])),
      ...(away.length > 0 && { away: away.map(({ name, reason = '' }) => ({ name, reason })) }),
    };
  }

  /** All dependencies. `reason` is undefined for a usable one. */
  answers(): Promise<{ name: string; reason: string | undefined }[]> {
    return Promise.all([...this.dependencies].map(async ([name, { check }]) => ({ name, reason: await answerOf(check) })));
  }
}

async function answerOf(check: ReadinessCheck): Promise<string | undefined> {
  try {
    const answer = Promise.resolve(check());
    return (await within(CHECK_TIMEOUT_MS, answer)) ? await answer : 'does not answer';
  } catch {
    return 'is unreachable';
  }
}
