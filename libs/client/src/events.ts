import type { CloudEvent } from '@app/contracts/event';
import type { Events } from './event-data';

export type { Events } from './event-data';
export type EventType = keyof Events;

/**
 * Handlers by event type. When a handler resolves, the event is acknowledged. When it fails, the event is retried, and becomes a dead letter after
 * the last attempt. The same event may arrive again after a failure, with the same `id`.
 */
export type Handlers = { [Type in EventType]?: (event: CloudEvent<Events[Type]>) => unknown };

/** Parses the body of an event; undefined when it is not an event. `data` is not validated: the publishing service is trusted. */
export function readEvent(content: Buffer): CloudEvent<unknown> | undefined {
  try {
    const event = JSON.parse(content.toString()) as Partial<CloudEvent<unknown>> | null;
    const isEvent = event?.specversion === '1.0' && typeof event.id === 'string' && typeof event.type === 'string';
    return isEvent && typeof event.data === 'object' ? (event as CloudEvent<unknown>) : undefined;
  } catch {
    return undefined;
  }
}
