import type { RabbitConnection } from './connection';

/** The connections of this process that have channels. */
export const IN_USE = new Set<Pick<RabbitConnection, 'address' | 'current' | 'giveUp'>>();

/**
 * Ends all connections of this process to one node. With Khepri a node in a minority stays connected, and nothing that is sent to it arrives. A
 * connection that only consumes would never notice.
 *
 * @param address as {@link RabbitConnection.address} has it
 */
export function leaveNode(address: string, why: string): void {
  for (const connection of IN_USE)
    if (connection.current && connection.address === address) connection.giveUp(connection.current, why);
}
