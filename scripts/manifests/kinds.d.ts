// Kinds of operators without published types: the fields that our manifests use, from the operators' definitions. No operator has read our
// objects.
import type { IObjectMeta } from '@kubernetes-models/apimachinery/apis/meta/v1/ObjectMeta';
import type { IResourceRequirements } from 'kubernetes-models/v1/ResourceRequirements';
import type { IAffinity } from 'kubernetes-models/v1/Affinity';
import type { ITopologySpreadConstraint } from 'kubernetes-models/v1/TopologySpreadConstraint';
import type { IHorizontalPodAutoscalerBehavior } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscalerBehavior';

interface Kind<ApiVersion extends string, Name extends string, Spec> {
  apiVersion: ApiVersion;
  kind: Name;
  metadata: IObjectMeta;
  spec: Spec;
}

interface Reference {
  name: string;
}

/** RabbitMQ Cluster Operator */
export type RabbitmqCluster = Kind<
  'rabbitmq.com/v1beta1',
  'RabbitmqCluster',
  {
    replicas?: number;
    image?: string;
    persistence?: { storageClassName?: string; storage?: string };
    resources?: IResourceRequirements;
    affinity?: IAffinity;
    terminationGracePeriodSeconds?: number;
    tls?: { secretName?: string; caSecretName?: string; disableNonTLSListeners?: boolean };
    rabbitmq?: { additionalConfig?: string; advancedConfig?: string; additionalPlugins?: string[] };
  }
>;

interface InCluster {
  rabbitmqClusterReference: { name: string; namespace?: string };
}

interface OfUser extends InCluster {
  vhost: string;
  userReference: Reference;
}

/** Messaging Topology Operator */
export type User = Kind<
  'rabbitmq.com/v1beta1',
  'User',
  InCluster & {
    tags?: ('management' | 'policymaker' | 'monitoring' | 'administrator')[];
    importCredentialsSecret?: Reference;
  }
>;

/** Messaging Topology Operator */
export type Permission = Kind<
  'rabbitmq.com/v1beta1',
  'Permission',
  OfUser & { permissions: { configure: string; write: string; read: string } }
>;

/** Messaging Topology Operator */
export type TopicPermission = Kind<
  'rabbitmq.com/v1beta1',
  'TopicPermission',
  OfUser & { permissions: { exchange: string; write: string; read: string } }
>;

/** CloudNativePG */
export type Cluster = Kind<
  'postgresql.cnpg.io/v1',
  'Cluster',
  {
    instances: number;
    imageName: string;
    primaryUpdateMethod?: 'restart' | 'switchover';
    storage: { size: string; storageClass?: string };
    walStorage?: { size: string; storageClass?: string };
    resources?: IResourceRequirements;
    topologySpreadConstraints?: ITopologySpreadConstraint[];
    affinity?: { enablePodAntiAffinity?: boolean; topologyKey?: string; podAntiAffinityType?: 'preferred' | 'required' };
    bootstrap: { initdb: { database: string; owner: string; postInitApplicationSQL?: string[] } };
    managed?: {
      roles: { name: string; ensure: 'present' | 'absent'; login?: boolean; passwordSecret?: Reference }[];
    };
    postgresql: {
      synchronous?: {
        method: 'any' | 'first';
        number: number;
        dataDurability?: 'required' | 'preferred';
        failoverQuorum?: boolean;
      };
      parameters?: Record<string, string>;
    };
  }
>;

/** Prometheus Operator */
export type PodMonitor = Kind<
  'monitoring.coreos.com/v1',
  'PodMonitor',
  {
    selector: { matchLabels: Record<string, string> };
    jobLabel?: string;
    podMetricsEndpoints: {
      port: string;
      path?: string;
      interval?: string;
      // Further actions exist. The check of the jobs understands "replace" on the label job.
      relabelings?: { sourceLabels: ['job']; regex: string; targetLabel: 'job'; replacement: string }[];
    }[];
  }
>;

/** Prometheus Operator */
export type PrometheusRule = Kind<
  'monitoring.coreos.com/v1',
  'PrometheusRule',
  {
    groups: {
      name: string;
      interval?: string;
      rules: {
        record?: string;
        alert?: string;
        expr: string;
        for?: string;
        labels?: Record<string, string>;
        annotations?: Record<string, string>;
      }[];
    }[];
  }
>;

interface Trigger<Type extends string, Metadata> {
  type: Type;
  metricType: 'AverageValue' | 'Value';
  metadata: Metadata;
  authenticationRef?: Reference;
}

/** KEDA */
export type ScaledObject = Kind<
  'keda.sh/v1alpha1',
  'ScaledObject',
  {
    scaleTargetRef: { name: string; kind?: string };
    pollingInterval?: number;
    minReplicaCount: number;
    maxReplicaCount: number;
    advanced?: { horizontalPodAutoscalerConfig: { behavior: IHorizontalPodAutoscalerBehavior } };
    triggers: (
      | Trigger<
          'rabbitmq',
          {
            protocol: 'http';
            mode: 'QueueLength';
            useRegex: 'true';
            operation: 'sum' | 'avg' | 'max';
            excludeUnacknowledged: 'true' | 'false';
            pageSize?: string;
            queueName: string;
            value: string;
          }
        >
      | Trigger<'prometheus', { serverAddress: string; query: string; threshold: string }>
    )[];
  }
>;

/** KEDA */
export type TriggerAuthentication = Kind<
  'keda.sh/v1alpha1',
  'TriggerAuthentication',
  { secretTargetRef: { parameter: string; name: string; key: string }[] }
>;
