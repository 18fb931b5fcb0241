/** The network link to a provider: whether it works, what that says about the Node, and what the provider's ranges are called here. */
import { type RemoteRanges, remoteRanges, unlinkedRanges } from '#agent/network/addresses/remote-address.ts';
import { namedRanges } from '#agent/network/ranges/configuration/decide.ts';
import type { Caches } from '#kube/model/types.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { type LinkSight, linkVerdict } from './link-verdict.ts';
import { type NetworkState, networkState } from './node-object.ts';

export interface Link {
  /** What its summary says. */
  state(): NetworkState;
  /** What the Node is told of it; see `linkVerdict`. */
  verdict(): NetworkState;
  remoteRanges(): RemoteRanges;
  /** Whether a link to the provider is declared. */
  isLinked(): boolean;
  /** Resolves when what `remoteRanges` says is knowledge and not ignorance. */
  synced(signal: AbortSignal): Promise<void>;
  /** Calls back when something has changed; returns the function that ends it. */
  follow(): () => void;
}

export interface LinkDeps {
  readonly caches: Caches;
  readonly clock: Clock;
  readonly virtualNode: () => VirtualNode;
  /** The rest of what a verdict needs. */
  readonly sight: () => Pick<LinkSight, 'nodeReady' | 'answered'>;
}

export function createLink(
  { caches, clock, virtualNode, sight }: LinkDeps,
  onChange: { readonly state: () => void; readonly ranges: () => void },
): Link {
  const peers = caches.cache(foreignClusters);
  const configurations = caches.cache<Configuration>(networkKinds.configurations);
  const networks = caches.cache<Network>(networkKinds.networks);
  const policies = caches.cache(peeringPolicies);
  const named = (): ReadonlySet<string> => namedRanges(policies.list(), virtualNode().spec.clusterID);
  const rangesOf = (configuration: Configuration | undefined): RemoteRanges =>
    configuration === undefined ? unlinkedRanges(networks.list(), named()) : remoteRanges(configuration);
  const stateOf = (foreign: ForeignCluster | undefined): NetworkState =>
    networkState(foreign, virtualNode().spec.disableNetworkCheck);
  const isPeers = (foreign: ForeignCluster | undefined): boolean =>
    foreign?.spec.clusterID === virtualNode().spec.clusterID;
  const isOfPeer = ({ metadata }: KubeObject): boolean =>
    metadata.namespace === virtualNode().metadata.namespace &&
    metadata.labels?.[label.remoteClusterId] === virtualNode().spec.clusterID;
  const state = (): NetworkState => stateOf(peers.list().find(isPeers));
  let downSince = Number.NEGATIVE_INFINITY;
  return {
    state,
    verdict: () => linkVerdict({ network: state(), downSince, ...sight() }),
    remoteRanges: () => rangesOf(configurations.list().find(isOfPeer)),
    isLinked: () => configurations.list().some(isOfPeer),
    async synced(signal) {
      await Promise.all([configurations.synced(signal), networks.synced(signal), policies.synced(signal)]);
    },
    follow() {
      const ends = [
        peers.subscribe(({ before, after }) => {
          if (!isPeers(after ?? before) || stateOf(before) === stateOf(after)) return;
          if (state() === 'down') downSince = clock.now();
          onChange.state();
        }),
        configurations.subscribe(({ before, after }) => {
          const subject = after ?? before;
          if (subject && isOfPeer(subject) && !sameContent(rangesOf(before), rangesOf(after))) onChange.ranges();
        }),
        networks.subscribe(({ before, after }) => {
          const isTold = !configurations.list().some(isOfPeer);
          const of = (network: Network | undefined): RemoteRanges => unlinkedRanges(network ? [network] : []);
          if (isTold && !sameContent(of(before), of(after))) onChange.ranges();
        }),
        policies.subscribe(({ before, after }) => {
          const ofOne = (policy: PeeringPolicy | undefined): readonly string[] => [
            ...namedRanges(policy ? [policy] : [], virtualNode().spec.clusterID),
          ];
          if (!configurations.list().some(isOfPeer) && !sameContent(ofOne(before), ofOne(after))) onChange.ranges();
        }),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
  };
}
