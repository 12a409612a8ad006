import { Logger } from '@nestjs/common';
import { Registry } from 'prom-client';
import { aDelivery } from '../../test/a-delivery';
import { TransportMetrics } from '../metrics';
import type { ExchangeName } from '../topology/topology';
import { LetterTurns } from './letter-turns';

/** The letter that was begun first is written first. */
class Bench {
  readonly turns = new LetterTurns(TransportMetrics.of(new Registry()));
  readonly begun: string[] = [];
  private readonly writing: (() => void)[] = [];

  enter(account: string, times = 1, exchange: ExchangeName = 'commands.1'): void {
    for (let time = 0; time < times; time++)
      void this.turns.run(aDelivery({ userId: account }, { queue: { exchange } }), () => {
        this.begun.push(account);
        return new Promise<void>((written) => this.writing.push(written));
      });
  }

  /** The broker takes the next letter. */
  write(): void {
    this.writing.shift()?.();
  }
}

const turnOfLoop = () => new Promise(setImmediate);

describe(LetterTurns.name, () => {
  beforeAll(() => Logger.overrideLogger(false));
  beforeEach(() => void jest.useFakeTimers({ doNotFake: ['setImmediate'] }));
  afterEach(() => void jest.useRealTimers());

  it('write two letters of the lanes at a time, with a rest after each', async () => {
    const bench = new Bench();
    bench.enter('mistaken', 30);
    bench.enter('another', 30, 'commands.2');
    expect(bench.begun).toHaveLength(2);
    for (let letter = 3; letter < 13; letter++) {
      bench.write();
      await turnOfLoop();
      jest.advanceTimersByTime(4);
      expect(bench.begun).toHaveLength(letter - 1);
      jest.advanceTimersByTime(1);
      expect(bench.begun).toHaveLength(letter);
    }
  });

  it('let the accounts of a lane take turns', async () => {
    const bench = new Bench();
    bench.enter('mistaken', 30);
    bench.enter('another');
    for (let letter = 0; letter < 2; letter++) {
      bench.write();
      await turnOfLoop();
      jest.advanceTimersByTime(5);
    }
    expect(bench.begun).toContain('another');
  });

  it('do not wait for letters that the broker does not take', async () => {
    const bench = new Bench();
    bench.enter('not taken', 2);
    bench.enter('another');
    jest.advanceTimersByTime(99);
    await turnOfLoop();
    expect(bench.begun).toEqual(['not taken', 'not taken']);
    jest.advanceTimersByTime(1);
    await turnOfLoop();
    // Their rest is as long again.
    jest.advanceTimersByTime(100);
    expect(bench.begun).toContain('another');
  });
});
