import type { ScaledObject, Trigger } from './scaled-object';

/** Kubernetes ignores a deviation of a metric from its target that is not larger. */
const TOLERANCE = 0.1;

/**
 * The decisions of a HorizontalPodAutoscaler, as KEDA makes it from a ScaledObject:
 * https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/#algorithm-details
 */
export class Autoscaler {
  private readonly recommended: { at: number; replicas: number }[] = [];
  private readonly changes: { at: number; added: number }[] = [];

  constructor(private readonly object: ScaledObject) {}

  /**
   * @param values of the triggers, in their order
   * @param current number of replicas
   * @param now in seconds
   * @returns what the metrics ask for, and the number of replicas that there should be now
   */
  decide(values: readonly number[], current: number, now: number): { asked: number; replicas: number } {
    const { minReplicaCount: least, maxReplicaCount: most, triggers, advanced } = this.object;
    const wanted = Math.max(...triggers.map((trigger, index) => wantedBy(trigger, values[index], current)));
    const asked = Math.min(most, Math.max(least, wanted));
    this.recommended.push({ at: now, replicas: asked });

    const { scaleUp, scaleDown } = advanced.horizontalPodAutoscalerConfig.behavior;
    const within = (seconds: number) => this.recommended.filter(({ at }) => at > now - seconds).map(({ replicas }) => replicas);
    // The largest recommendation of the window decides about going down, the smallest about going up.
    const down = Math.max(asked, ...within(scaleDown.stabilizationWindowSeconds));
    const up = Math.min(asked, ...within(scaleUp.stabilizationWindowSeconds));
    const replicas = up > current ? Math.min(up, this.mostAfter(current, now)) : down < current ? down : current;
    if (replicas > current) this.changes.push({ at: now, added: replicas - current });
    return { asked, replicas };
  }

  /** Limited by the policies for going up. The policies for going down allow everything. */
  private mostAfter(current: number, now: number): number {
    const { policies } = this.object.advanced.horizontalPodAutoscalerConfig.behavior.scaleUp;
    return Math.max(
      ...policies.map(({ type, value, periodSeconds }) => {
        const recent = this.changes.filter(({ at }) => at > now - periodSeconds).reduce((sum, { added }) => sum + added, 0);
        const before = current - recent;
        return type === 'Pods' ? before + value : Math.ceil(before * (1 + value / 100));
      }),
    );
  }
}

function wantedBy({ type, metadata }: Trigger, value: number, current: number): number {
  const target = Number(type === 'rabbitmq' ? metadata.value : metadata.threshold);
  // AverageValue is for each replica, Value for all together.
  const ratio = type === 'rabbitmq' ? value / target / current : value / target;
  return Math.abs(ratio - 1) <= TOLERANCE ? current : Math.ceil(ratio * current);
}
