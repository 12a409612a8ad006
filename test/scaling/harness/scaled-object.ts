/** The ScaledObject of the manifests, as far as the test reads it. */
export interface ScaledObject {
  pollingInterval: number;
  minReplicaCount: number;
  maxReplicaCount: number;
  advanced: { horizontalPodAutoscalerConfig: { behavior: { scaleUp: Behavior; scaleDown: Behavior } } };
  triggers: Trigger[];
}

interface Behavior {
  stabilizationWindowSeconds: number;
  policies: { type: 'Pods' | 'Percent'; value: number; periodSeconds: number }[];
}

export type Trigger =
  | {
      type: 'rabbitmq';
      metricType: 'AverageValue';
      metadata: { queueName: string; pageSize: string; excludeUnacknowledged: 'true'; operation: 'sum'; value: string };
    }
  | { type: 'prometheus'; metricType: 'Value'; metadata: { query: string; threshold: string } };
