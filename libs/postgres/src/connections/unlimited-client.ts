import { KEPT_ALIVE, MISSED_WHEN_LOST, optionsOf } from './data-source';
import { ImpatientClient } from './impatient-client';
import type { WritableClientConfig } from './writable-client';

const NONE = {
  ...{ statement_timeout: 0, lock_timeout: 0 },
  ...{ idle_session_timeout: 0, idle_in_transaction_session_timeout: 0 },
};

/** Silence after which the server is asked whether it works. It may have very much to do. */
const SILENCE_MS = 60_000;

/**
 * A connection without the time limits that its account may have from `ALTER ROLE … SET`: they would end long work at each repetition. It is kept
 * alive, because firewalls forget silent connections, and given up when the server has stopped.
 */
export class UnlimitedClient extends ImpatientClient {
  protected override readonly waits = true;

  /** @param config of the connection @param parameters more settings of it */
  constructor({ parameters, ...config }: WritableClientConfig & { parameters?: Record<string, string> }, silenceMs = SILENCE_MS) {
    super({ ...config, ...KEPT_ALIVE, options: optionsOf({ ...MISSED_WHEN_LOST, ...NONE, ...parameters }) }, silenceMs);
  }
}
