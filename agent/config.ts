/** The agent's configuration: read from the environment once, checked, with real units. */
import * as z from 'zod';
import {
  type CredentialSetting,
  credentialSettings,
  credentialVariable,
  defaultCredentials,
} from '#shared/domain/credential-setting.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ClusterId } from '#shared/schema/protocol/agent-protocol.ts';
import { type MetricsSettings, metricsSettings } from './metrics/settings.ts';

const Env = z.object({
  ISTHMUS_CLUSTER_ID: ClusterId,
  /** How peers reach this cluster's API server. */
  ISTHMUS_API_SERVER_URL: z.url({ protocol: /^https$/ }),
  /** PEM; default: the CA that the agent itself was given to reach the API server. */
  ISTHMUS_API_SERVER_CA: z.string().optional(),
  /** A kubeconfig file, for running outside of a pod. */
  ISTHMUS_KUBECONFIG: z.string().optional(),
  ISTHMUS_SYSTEM_NAMESPACE: z.string().default('liqo'),
  /** ClusterRole that pods of gateways need in tenant namespaces, as on OpenShift. */
  ISTHMUS_GATEWAY_ROLE: z.string().min(1).optional(),
  /** Labels of the virtual nodes that stand for this cluster: `KEY=VALUE,…`. */
  ISTHMUS_CLUSTER_LABELS: z
    .string()
    .regex(/^([^\s=,]+=[^\s=,]*(,[^\s=,]+=[^\s=,]*)*)?$/, 'KEY=VALUE,… is accepted')
    .default(''),
  /** How long certificates are valid that this cluster issues to its consumers; 600 is the least that the API server accepts. */
  ISTHMUS_CERTIFICATE_SECONDS: z.coerce
    .number()
    .int()
    .min(600)
    .default(7 * 24 * 3600),
  /** What consumers get: a certificate, a token where the cluster signs no certificates, or what the agent finds that it can give. */
  [credentialVariable]: z.enum(credentialSettings).default(defaultCredentials),
  /** After so long, pods that are being deleted on a node that is not ready are deleted by force; 0: never. */
  ISTHMUS_NODE_FAILURE_SECONDS: z.coerce.number().int().min(0).default(0),
  ISTHMUS_KUBELET_PORT_BASE: z.coerce.number().int().min(1024).max(65_000).default(11_250),
  ISTHMUS_WEBHOOK_PORT: z.coerce.number().int().min(1).max(65_535).default(9443),
  /** Where webhooks and the API server's proxy listen. Default: at every address. */
  ISTHMUS_LISTEN_HOST: z.string().min(1).optional(),
  /** Liveness and readiness. */
  ISTHMUS_HEALTH_PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  /** Default: at every address. */
  ISTHMUS_HEALTH_HOST: z.string().min(1).optional(),
  /** `false`: claims get no volumes from us. */
  ISTHMUS_STORAGE: z.enum(['true', 'false']).default('true'),
  ISTHMUS_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  POD_NAME: z.string().min(1).default('isthmus-agent'),
  NODE_NAME: z.string().optional(),
  POD_IP: z.string().min(1).default('127.0.0.1'),
});

export interface AgentConfig {
  readonly clusterId: string;
  readonly apiServerUrl: string;
  readonly apiServerCa?: string;
  readonly kubeconfigPath?: string;
  readonly systemNamespace: string;
  readonly gatewayRole?: string;
  readonly clusterLabels: Readonly<Record<string, string>>;
  readonly certificateLifetimeSeconds: number;
  readonly credentials: CredentialSetting;
  /** 0: never. */
  readonly nodeFailureSeconds: number;
  readonly storage: boolean;
  readonly kubeletPortBase: number;
  readonly webhookPort: number;
  readonly listenHost?: string;
  readonly healthPort: number;
  readonly healthHost?: string;
  /** Absent: they are not served. */
  readonly metrics?: MetricsSettings;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly podName: string;
  readonly podIp: string;
  readonly nodeName?: string;
}

const labelsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split(',')
      .filter((pair) => pair !== '')
      .map((pair) => pair.split('=') as [string, string]),
  );

/** Fails with `invalid_input` naming every variable that is missing or wrong. */
export function loadAgentConfig(env: Readonly<Record<string, string | undefined>>): AgentConfig {
  const parsed = Env.safeParse(env);
  const faults = (parsed.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  const metrics = metricsSettings(env, faults);
  if (!parsed.success || faults.length > 0) {
    throw new AppError(
      'invalid_input',
      `the agent's environment is not usable: ${faults.join('; ')}; \`isthmus join\` sets all of it`,
    );
  }
  const e = parsed.data;
  return Object.freeze({
    clusterId: e.ISTHMUS_CLUSTER_ID,
    apiServerUrl: e.ISTHMUS_API_SERVER_URL.replace(/\/+$/, ''),
    ...(e.ISTHMUS_API_SERVER_CA ? { apiServerCa: e.ISTHMUS_API_SERVER_CA } : {}),
    ...(e.ISTHMUS_KUBECONFIG ? { kubeconfigPath: e.ISTHMUS_KUBECONFIG } : {}),
    systemNamespace: e.ISTHMUS_SYSTEM_NAMESPACE,
    ...(e.ISTHMUS_GATEWAY_ROLE ? { gatewayRole: e.ISTHMUS_GATEWAY_ROLE } : {}),
    clusterLabels: labelsOf(e.ISTHMUS_CLUSTER_LABELS),
    certificateLifetimeSeconds: e.ISTHMUS_CERTIFICATE_SECONDS,
    credentials: e[credentialVariable],
    nodeFailureSeconds: e.ISTHMUS_NODE_FAILURE_SECONDS,
    storage: e.ISTHMUS_STORAGE === 'true',
    kubeletPortBase: e.ISTHMUS_KUBELET_PORT_BASE,
    webhookPort: e.ISTHMUS_WEBHOOK_PORT,
    ...(e.ISTHMUS_LISTEN_HOST ? { listenHost: e.ISTHMUS_LISTEN_HOST } : {}),
    healthPort: e.ISTHMUS_HEALTH_PORT,
    ...(e.ISTHMUS_HEALTH_HOST ? { healthHost: e.ISTHMUS_HEALTH_HOST } : {}),
    ...(metrics === undefined ? {} : { metrics }),
    logLevel: e.ISTHMUS_LOG_LEVEL,
    podName: e.POD_NAME,
    podIp: e.POD_IP,
    ...(e.NODE_NAME ? { nodeName: e.NODE_NAME } : {}),
  });
}
