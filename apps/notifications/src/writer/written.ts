import type { NewNotification, StoredBefore } from '../db/insert-notifications.repository';

/**
 * Outcome of a notification:
 * - `stored`: it is stored, now or by an earlier delivery of the same command;
 * - `different`: another notification has its id;
 * - `keyReused`: its Idempotency-Key belongs to another request;
 * - `expired`: its deadline had passed, nothing was stored;
 * - `contended`: it lost every race for its organization or row, nothing was stored.
 */
export type Written =
  { outcome: 'stored'; notificationId: string } | { outcome: 'different' | 'keyReused' | 'expired' | 'contended' };

/** The outcome of a notification that was not inserted. `again`: it has no conflict. */
export function judge(notification: NewNotification, { fingerprint, answer }: StoredBefore): Written | 'again' {
  const { idempotency, deadline } = notification;
  if (answer && idempotency) {
    return answer.fingerprint.equals(idempotency.fingerprint)
      ? { outcome: 'stored', notificationId: answer.notificationId }
      : { outcome: 'keyReused' };
  }
  if (fingerprint) {
    return fingerprint.equals(notification.fingerprint)
      ? { outcome: 'stored', notificationId: notification.id }
      : { outcome: 'different' };
  }
  return deadline !== undefined && deadline < Date.now() ? { outcome: 'expired' } : 'again';
}
