/** NOTIFY on it wakes the relays of the running users service, for a program that writes events into its outbox and has no relay. */
export const WRITTEN_ELSEWHERE = 'users_outbox_written_elsewhere';
