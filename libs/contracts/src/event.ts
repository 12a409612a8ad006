import type { EventType } from './event-types';
import type { ServiceName } from './message';

/**
 * An event type. Events are published to all listeners at least once, in no particular order. A repetition has the same `id`. Changed objects carry
 * a growing `version`, so that a listener can keep the newest.
 *
 * @typeParam Data the `data` of the event
 */
export interface Event<Data> {
  readonly service: ServiceName;
  /** `<noun>.<what happened>.v<major>`: routing key in exchange `events`, and CloudEvents `type`. */
  readonly type: EventType;
  readonly data: new () => Data;
  /** Meaning of the event, as prose with code in backticks; part of the documentation. */
  readonly purpose: string;
  readonly example: Data;
}

/** The body of an event: CloudEvents 1.0 in structured mode, https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md */
export interface CloudEvent<Data> {
  specversion: '1.0';
  /** Unique for `source`, and the same in every repetition. */
  id: string;
  /** `/users` or `/notifications`: the service. */
  source: string;
  type: string;
  /** The organization, or the API key if the event is about one. */
  subject: string;
  /** Time of the event, RFC 3339 in UTC. */
  time: string;
  datacontenttype: 'application/json';
  /** The tenant. */
  apikey: string;
  data: Data;
}

/** Declares an event type. */
export const event = <Data>(
  service: ServiceName,
  type: EventType,
  data: new () => Data,
  about: Pick<Event<NoInfer<Data>>, 'purpose' | 'example'>,
): Event<Data> => ({ service, type, data, ...about });
