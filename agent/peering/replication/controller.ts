/** Consumer: copies slices, namespace maps and renewals to their provider, and brings the status of each copy back. */
import { peerOf } from '#agent/model/peering-selections.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { keyOf } from '#shared/domain/kube-object.ts';
import { settled } from '#shared/domain/outcome.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tokenOpener } from '../keys/token-opener.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { createConnections } from './connections.ts';
import { createCredentialWork } from './credentials.ts';
import { createOriginalWork } from './originals.ts';
import { isControlPlane, replicatedKinds } from './sessions.ts';
import { createReplicatorView, keyFor, linkPrefix, secretPrefix } from './work-keys.ts';

export function createReplicatorController(deps: PeeringDeps): Controller {
  const { cluster, clusterId, config, clock, log } = deps;
  const openToken = tokenOpener(cluster.api, config.systemNamespace);
  const view = createReplicatorView(deps);
  const connections = createConnections(
    clusterId,
    deps.connectPeer ?? createConnectCluster({ clock, log, openToken }),
    {
      onCopy: (type, { namespace, name }) => controller.enqueue(keyFor(type.plural, `${namespace}/${name}`)),
      onChange: (peer) => view.keysOfPeer(peer).forEach(controller.enqueue),
    },
  );
  const credentials = createCredentialWork(deps, view, connections);
  const originals = createOriginalWork(deps, view, connections, credentials);

  const controller = createController(
    {
      name: 'replicator',
      workers: 4,
      watches: [
        watch(view.secrets, (secret) => (isControlPlane(secret) ? [keyFor(secretPrefix, keyOf(secret))] : [])),
        watch(view.namespaces, (namespace) => view.keysOfPeer(peerOf(namespace) ?? '')),
        watch(view.clusters, (foreign) => view.keysOfPeer(foreign.spec.clusterID)),
        watch(view.nodes, (node) =>
          ownerName(resourceSlices, node) === undefined ? [] : [keyFor(resourceSlices.plural, keyOf(node))],
        ),
        ...view.link.caches.map((cache) => watch(cache, view.keysOfLink)),
        ...replicatedKinds.map((type) => watch(view.originals(type), (object) => view.keysOfOriginal(type, object))),
      ],
      async reconcile(key, signal) {
        const [prefix = '', rest = ''] = key.split('|', 2);
        if (prefix === secretPrefix) return credentials.reconcile(rest, signal);
        if (prefix === linkPrefix) return credentials.hangUp(rest);
        const type = replicatedKinds.find(({ plural }) => plural === prefix);
        return type === undefined ? settled : originals.reconcile(type, rest, signal);
      },
    },
    { clock, log },
  );

  return {
    ...controller,
    async run(signal) {
      connections.start();
      try {
        await controller.run(signal);
      } finally {
        connections.stopAll();
      }
    },
  };
}
