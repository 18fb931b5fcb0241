/** What a session with the provider works with: what its virtual node lends it, and the context of pods, read at each look. */
import type { ReflectionOptions } from '#agent/reflection/engine/options.ts';
import type { SharedReflection } from '#agent/reflection/shared-reflection.ts';
import type { ConnectedCluster } from '#agent/runtime/connect-cluster.ts';
import type { ReachableProviders } from '#agent/storage/providers/reachable-providers.ts';
import type { OffloadingPatch, VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { NodeEndpointDeps } from '../kubelet-api/node-endpoint.ts';
import type { Link } from './link-state.ts';
import type { NodeMetrics } from './node-metrics.ts';
import type { SessionDeps } from './provider-session.ts';

/** The same for all virtual nodes of this process. */
export interface SessionGround extends Pick<NodeEndpointDeps, 'cluster' | 'clusterId' | 'clock' | 'podIp'> {
  readonly nodeMetrics?: NodeMetrics;
  readonly reflection: SharedReflection;
  /** Absent: no volumes are made at providers. */
  readonly providers?: ReachableProviders;
}

/** What is known of the node at the moment. */
export interface SessionNode
  extends Pick<SessionDeps, 'localPods' | 'mapping' | 'nodeReady' | 'log' | 'onRemoteChange' | 'options'> {
  readonly virtualNode: () => VirtualNode;
  readonly link: Pick<Link, 'remoteRanges' | 'isLinked'>;
}

export function sessionDeps(ground: SessionGround, node: SessionNode, provider: ConnectedCluster): SessionDeps {
  const { cluster, clusterId, clock, podIp, reflection, providers } = ground;
  const { virtualNode, link, ...lent } = node;
  const { metadata, spec } = virtualNode();
  const metrics = ground.nodeMetrics?.controllers(metadata.name, spec.clusterID);
  return {
    ...lent,
    local: cluster,
    provider,
    consumer: clusterId,
    providerId: spec.clusterID,
    nodeName: metadata.name,
    providers,
    context: (namespace) => {
      const now = virtualNode();
      const options = node.options();
      return {
        consumer: clusterId,
        provider: now.spec.clusterID,
        nodeName: metadata.name,
        patch: patchOf(now, options),
        home: reflection.home(now.spec.clusterID, options, namespace),
        hostIp: podIp,
        remoteRanges: link.remoteRanges(),
        showsAddresses: options.addresses,
        isLinked: link.isLinked(),
      };
    },
    clock,
    ...(metrics && { metrics }),
    shared: reflection,
  };
}

/** What the options say about keys counts for pods too. */
const patchOf = (
  { spec }: VirtualNode,
  { labelsNotReflected, annotationsNotReflected }: ReflectionOptions,
): OffloadingPatch => ({
  ...spec.offloadingPatch,
  labelsNotReflected: [...labelsNotReflected],
  annotationsNotReflected: [...annotationsNotReflected],
});
