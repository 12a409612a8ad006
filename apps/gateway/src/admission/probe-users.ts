import type { RabbitClient } from '@app/rabbitmq/client/rabbit.client';
import type { Authenticator } from './authenticator';

/** Pause while the users service does not answer. */
const AWAY_MS = 250;
/** An idle gateway notices within this time that the users service is away. Calls notice it at once. */
const QUIET_MS = 5000;

/** Asks the users service until it answers, and then whenever no call has asked it for 5 s. @returns a function that stops it */
export function probeUsers(authenticator: Authenticator, rabbit: Pick<RabbitClient, 'check'>): () => void {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const probe = async (): Promise<void> => {
    // Without the broker there is nothing to learn: its own check has the reason.
    if (rabbit.check() === undefined) await authenticator.probe(QUIET_MS);
    if (!isStopped) timer = setTimeout(() => void probe(), authenticator.check() === undefined ? QUIET_MS : AWAY_MS);
  };
  void probe();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
