import { Autoscaler } from './autoscaler';
import type { ScaledObject } from './scaled-object';

const OBJECT = {
  minReplicaCount: 1,
  maxReplicaCount: 6,
  advanced: {
    horizontalPodAutoscalerConfig: {
      behavior: {
        scaleUp: { stabilizationWindowSeconds: 0, policies: [{ type: 'Pods', value: 4, periodSeconds: 15 }] },
        scaleDown: { stabilizationWindowSeconds: 120, policies: [{ type: 'Percent', value: 100, periodSeconds: 15 }] },
      },
    },
  },
  triggers: [
    { type: 'rabbitmq', metadata: { value: '1000' } },
    { type: 'prometheus', metadata: { threshold: '2' } },
  ],
} as unknown as ScaledObject;

describe('the autoscaler of the test', () => {
  it.each([
    ['no load', [0, 0], 1, 1],
    ['a backlog for three', [2500, 0], 1, 3],
    ['a backlog within the tolerance', [2150, 0], 2, 2],
    ['an age of three times the target', [0, 6], 2, 6],
    ['the larger of the two', [1500, 8], 1, 4],
    ['the maximum', [90_000, 0], 4, 6],
  ])('asks for %s', (_, values, current, asked) => {
    expect(new Autoscaler(OBJECT).decide(values, current, 0).asked).toBe(asked);
  });

  it('adds four at a time, and goes down when nothing else was asked for in two minutes', () => {
    const scaler = new Autoscaler(OBJECT);
    let current = 1;
    const replicasAt = (now: number, backlog: number) => (current = scaler.decide([backlog, 0], current, now).replicas);
    expect([replicasAt(0, 90_000), replicasAt(15, 90_000)]).toEqual([5, 6]);
    expect([30, 100, 130, 134, 136].map((now) => replicasAt(now, 0))).toEqual([6, 6, 6, 6, 1]);
  });
});
