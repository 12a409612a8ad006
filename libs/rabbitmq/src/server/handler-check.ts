import { SUBSCRIPTIONS } from '@app/contracts/all-events';
import { ALL_MESSAGES } from '@app/contracts/all-messages';
import type { ServiceName } from '@app/contracts/message';

/** Every routing key that a service handles: its own messages, and the events that it listens to. */
export const patternsOf = (service: ServiceName): string[] => [
  ...ALL_MESSAGES.filter((message) => message.service === service).map(({ pattern }) => pattern),
  ...SUBSCRIPTIONS[service].map(({ type }) => type),
];

/**
 * Checks that every message of a service and every event that it listens to has exactly one handler, and that no other pattern has one. A missing
 * handler fails at boot instead of in a timeout.
 *
 * @param patterns pattern of each handler, with duplicates
 * @throws Error that names every wrong pattern
 */
export function checkHandlers(service: ServiceName, patterns: readonly string[]): void {
  const owned = patternsOf(service);
  const handlersOf = (pattern: string) => patterns.filter((one) => one === pattern).length;
  const unowned = new Set(patterns.filter((pattern) => !owned.includes(pattern)));
  const problems = [
    ...owned.filter((pattern) => handlersOf(pattern) === 0).map((pattern) => `${pattern} has no handler`),
    ...[...unowned].map((pattern) => `${pattern} is not a message of ${service}`),
    ...owned.filter((pattern) => handlersOf(pattern) > 1).map((pattern) => `${pattern} has more than one handler`),
  ];
  if (problems.length > 0) throw new Error(`The handlers of the service ${service} are wrong: ${problems.join('; ')}.`);
}
