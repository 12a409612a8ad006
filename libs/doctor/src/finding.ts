/** `problem`: something does not work, or soon will not. `warning`: worth a look. `skipped`: could not be looked at. */
export type State = 'ok' | 'warning' | 'problem' | 'skipped';

/** One line of the result. It never contains a password or the content of a row. */
export interface Finding {
  /** The part of the system: configuration, broker or database. */
  area: 'configuration' | 'broker' | 'database';
  /** The thing that was looked at, such as an account. */
  subject: string;
  state: State;
  /** The result, as a sentence without a subject. */
  found: string;
  /** The remedy; only with a warning or problem. */
  action?: string;
}

/** The remedy for a host name without an address: that of a container may end with it. */
export const NO_ADDRESS =
  'start the server, if its name is that of a container; else correct the host name in the URL, or the DNS';

/** Collects the findings of one area. */
export class Findings {
  readonly all: Finding[] = [];

  constructor(private readonly area: Finding['area']) {}

  ok(subject: string, found: string): void {
    this.all.push({ area: this.area, subject, state: 'ok', found });
  }

  warning(subject: string, found: string, action: string): void {
    this.all.push({ area: this.area, subject, state: 'warning', found, action });
  }

  problem(subject: string, found: string, action: string): void {
    this.all.push({ area: this.area, subject, state: 'problem', found, action });
  }

  skipped(subject: string, found: string): void {
    this.all.push({ area: this.area, subject, state: 'skipped', found });
  }
}

/** One line for a person. */
export const lineOf = ({ area, subject, state, found, action }: Finding): string =>
  `${(state === 'ok' || state === 'skipped' ? state : state.toUpperCase()).padEnd(8)} ${area}: ${subject}: ${found}.${action ? ` -> ${action}.` : ''}`;
