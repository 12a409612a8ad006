import { Registry } from 'prom-client';
import type { Delivery } from '../src/delivery/delivery';
import { TransportMetrics } from '../src/metrics';
import { Turns } from '../src/server/turns';
import { aDelivery } from './a-delivery';

export const PLACES = 4;

/** One delivery after the other ends, the one that has run longest first. */
export class TurnsBench {
  /** Keys in the order in which their deliveries began. */
  readonly started: string[] = [];
  private readonly running: { delivery: Delivery; end(): void }[] = [];
  private readonly turns: Turns;
  private readonly registry = new Registry();

  constructor(
    private readonly kind: 'commands' | 'queries' | 'events',
    places = PLACES,
  ) {
    this.turns = new Turns(kind, TransportMetrics.of(this.registry), places);
  }

  open(): void {
    this.turns.open();
  }

  enter(apiKey: string, pattern: string, times: number, bytes = 100, awaited = true): void {
    for (let time = 0; time < times; time++) {
      const exchange = this.kind === 'events' ? ('events.own' as const) : ('calls' as const);
      const from = { queue: { kind: this.kind, exchange }, content: Buffer.alloc(bytes) };
      const delivery = aDelivery({ apiKey, pattern, awaited, userId: 'users' }, from);
      const work = () => {
        this.started.push(apiKey);
        return new Promise<void>((end) => this.running.push({ delivery, end }));
      };
      void this.turns.run(delivery, work);
    }
  }

  /** @param state what the handler says of its work */
  async finish(times: number, state: (delivery: Delivery) => void = () => undefined): Promise<void> {
    for (let time = 0; time < times; time++) {
      const one = this.running.shift();
      if (!one) throw new Error('nothing runs');
      state(one.delivery);
      one.end();
      // Turns go on in a later microtask.
      await new Promise(setImmediate);
    }
  }

  /** Ends the delivery that began last. */
  async finishLast(state: (delivery: Delivery) => void): Promise<void> {
    this.running.unshift(this.running.pop()!);
    await this.finish(1, state);
  }

  async inTurn(apiKey: string, pattern: string, times: number, state: (delivery: Delivery) => void): Promise<void> {
    for (let time = 0; time < times; time++) {
      this.enter(apiKey, pattern, 1);
      await this.finish(1, state);
    }
  }

  /** Deliveries of the key that run at once, out of many, beside light work of another. All of them fail in the end, and teach nothing. */
  async atOnceBeside(other: string, lightPattern: string, apiKey: string, pattern: string): Promise<number> {
    this.enter(other, lightPattern, 1);
    this.enter(apiKey, pattern, 20);
    const runs = this.runs(apiKey);
    while (this.isBusy) {
      await this.finish(1);
      jest.advanceTimersByTime(1);
    }
    return runs;
  }

  /** Deliveries that wait and run, as the metrics say. */
  async reported(): Promise<number[]> {
    const names = ['rabbitmq_deliveries_waiting', 'rabbitmq_deliveries_running'];
    const values = await Promise.all(names.map((name) => this.registry.getSingleMetric(name)!.get()));
    return values.map(({ values: [one] }) => one.value);
  }

  get isBusy(): boolean {
    return this.running.length > 0;
  }

  /** Deliveries of the key that run now. */
  runs(apiKey: string): number {
    return this.running.filter(({ delivery }) => delivery.context.apiKey === apiKey).length;
  }

  count(apiKey: string, after = 0): number {
    return this.started.slice(after).filter((one) => one === apiKey).length;
  }
}

/** States the rows of a delivery of the key `expensive`. */
export const rows = (count: number) => (delivery: Delivery) => {
  if (delivery.context.apiKey === 'expensive') delivery.context.rows = count;
};

const answers = (bytes: number) => (delivery: Delivery) => void (delivery.replyBytes = bytes);
/** Of a delivery with a small or a large answer. */
export const small = answers(2);
export const large = answers(4 * 1024 * 1024);
