/**
 * The two ways in which the controllers run. Usually alone, without any privilege, in the pods' network. On a cluster of one node beside the
 * node process, in one process that has what that needs: a second one would cost as much memory as everything it does. Pure.
 */
import type { Deployment } from '#shared/domain/core-kinds.ts';
import { type NodeProcess, nodeProcess, nodeProcessLabel } from '#shared/domain/network-keys.ts';

type DeploymentSpec = NonNullable<Deployment['spec']>;
type PodSpec = NonNullable<DeploymentSpec['template']['spec']>;
type Container = PodSpec['containers'][number];

export interface Arrangement {
  readonly role: 'controller' | 'all';
  readonly podLabels: Readonly<Record<string, string>>;
  readonly strategy: NonNullable<DeploymentSpec['strategy']>;
  readonly ports: { readonly webhook: number; readonly health: number; readonly metrics: number };
  /** Where the kubelet finds the probes; absent: at the pod's address. */
  readonly probeHost?: string;
  readonly memoryRequest: string;
  readonly env: NonNullable<Container['env']>;
  readonly pod: Partial<PodSpec>;
  readonly container: Partial<Container>;
}

export const fullMasqueradeEnv = 'ISTHMUS_FULL_MASQUERADE';
/** The image's own user. */
const agentUser = 65_532;
const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

export const alone: Arrangement = {
  role: 'controller',
  podLabels: {},
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
  ports: { webhook: 9443, health: 8080, metrics: 8443 },
  memoryRequest: '64Mi',
  env: [],
  pod: {
    securityContext: {
      runAsNonRoot: true,
      runAsUser: agentUser,
      runAsGroup: agentUser,
      seccompProfile: { type: 'RuntimeDefault' },
    },
  },
  container: {
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  },
};

/** Below the ports of virtual nodes, which begin at 11250. Other than when alone, so that no host port outlives a change of arrangement. */
export const hostPorts = { webhook: 11_249, health: 11_248, metrics: 11_247 } as const;

/** By the arguments of the agent's container. */
export const nodeProcessOf = ([role]: readonly string[]): NodeProcess =>
  role === 'all' ? nodeProcess.shared : nodeProcess.own;

export const withNodeProcess = (fullMasquerade: boolean | undefined): Arrangement => ({
  role: 'all',
  podLabels: { [nodeProcessLabel]: nodeProcess.shared },
  // The ports of a node are free only once the pod before has ended.
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
  ports: hostPorts,
  probeHost: '127.0.0.1',
  memoryRequest: '96Mi',
  env: [
    { name: fullMasqueradeEnv, value: String(fullMasquerade ?? 'auto') },
    // In the node's network nothing listens where it need not.
    field('ISTHMUS_LISTEN_HOST', 'status.podIP'),
    { name: 'ISTHMUS_HEALTH_HOST', value: '127.0.0.1' },
  ],
  pod: {
    hostNetwork: true,
    hostPID: true,
    dnsPolicy: 'ClusterFirstWithHostNet',
    priorityClassName: 'system-node-critical',
    volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '32Mi' } }],
  },
  container: {
    securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0, readOnlyRootFilesystem: true },
    // Batches for ip and nft.
    volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
  },
});
