import type { EventType } from './event-types';
import type { ServiceName } from './message';

/**
 * Something that has happened, told to whoever listens: at least once, in no order. Repetitions have the same `id`; what has changed carries
 * a `version` that only grows, so that a listener keeps the newest.
 *
 * @typeParam Data the `data` of the event
 */
export interface Event<Data> {
  readonly service: ServiceName;
  /** `<noun>.<what happened>.v<major>`: routing key in exchange `events`, and CloudEvents `type`. */
  readonly type: EventType;
  readonly data: new () => Data;
  /** What has happened, as prose with code in backticks; documentation is made of it. */
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
  /** The organization; of an event about an API key, that key. */
  subject: string;
  /** When it happened, RFC 3339 in UTC. */
  time: string;
  datacontenttype: 'application/json';
  /** The tenant. */
  apikey: string;
  data: Data;
}

/** Declares an event under its type. */
export const event = <Data>(
  service: ServiceName,
  type: EventType,
  data: new () => Data,
  about: Pick<Event<NoInfer<Data>>, 'purpose' | 'example'>,
): Event<Data> => ({ service, type, data, ...about });
