/** Renewal of control-plane certificates: the consumer keeps one standing Renew, the provider answers it, the consumer takes the answer over. */
import { rangeIps } from '#agent/model/network-selections.ts';
import { peerOf, tenantNamespaces, tenantsByCluster } from '#agent/model/peering-selections.ts';
import { isReplica } from '#agent/model/slice-roles.ts';
import { placementOf } from '#agent/model/tenant-namespaces.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { applyWanted, deleteObject, writeStatus } from '#kube/writes/write-if-changed.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { type KubeObject, keyOf, type ObjectRef, refOfKey } from '#shared/domain/kube-object.ts';
import { ipType } from '#shared/domain/network-keys.ts';
import { settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { isControlPlane, renewedParams } from './decide.ts';
import { buildRenew } from './objects.ts';
import { takeOver } from './take-over.ts';

const identityKeys = (renew: KubeObject): string[] => {
  const owner = ownerName(identities, renew);
  return owner === undefined ? [] : [`${renew.metadata.namespace}/${owner}`];
};

export function createLocalRenewController({ cluster, clusterId, clock, log }: PeeringDeps): Controller {
  const { api, caches } = cluster;
  const cache = caches.cache(identities);
  const renewCache = caches.cache(renews);

  async function orphaned(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const renew = renewCache.get(ref);
    if (
      renew === undefined ||
      renew.metadata.deletionTimestamp !== undefined ||
      ownerName(identities, renew) !== ref.name
    )
      return;
    if ((await api.get(identities, ref, signal)) === undefined) await deleteObject(api, renews, renew, signal);
  }

  return createController(
    {
      name: 'local-renew',
      watches: [
        watch(cache, (identity) => (isControlPlane(identity) ? [keyOf(identity)] : [])),
        watch(renewCache, identityKeys),
      ],
      async reconcile(key, signal) {
        const ref = refOfKey(key);
        const identity = cache.get(ref);
        if (identity === undefined) {
          await orphaned(ref, signal);
          return settled;
        }
        if (!isControlPlane(identity) || identity.metadata.deletionTimestamp !== undefined) return settled;
        const renew = renewCache.get(ref);
        if (renew?.metadata.deletionTimestamp === undefined) {
          await applyWanted(api, renews, renew, buildRenew(identity, clusterId), ({ spec }) => spec, signal);
        }
        const authParams = renewedParams(identity, renew);
        if (authParams === undefined) return settled;
        await takeOver(cluster, identity, authParams, '', signal);
        return settled;
      },
    },
    { clock, log },
  );
}

export function createRemoteRenewController({ cluster, config, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = caches.cache(renews);
  const tenantCache = tenantsByCluster(caches);
  const namespaces = tenantNamespaces(caches);
  const ips = rangeIps(caches);
  const proxyRef = { namespace: config.systemNamespace, name: ipType.apiServerProxy };
  const replicas = () => cache.list().filter(isReplica);
  const reportWait = createReportWait(events, clock);
  return createController(
    {
      name: 'remote-renew',
      watches: [
        watch(cache, (renew) => (isReplica(renew) ? [keyOf(renew)] : [])),
        watch(tenantCache, (tenant) =>
          replicas()
            .filter((renew) => renew.metadata.namespace === tenant.metadata.namespace)
            .map(keyOf),
        ),
        watch(ips, ({ metadata }) =>
          metadata.name === proxyRef.name && metadata.namespace === proxyRef.namespace ? replicas().map(keyOf) : [],
        ),
      ],
      async reconcile(key, signal) {
        const renew = cache.get(refOfKey(key));
        if (renew === undefined || !isReplica(renew) || renew.metadata.deletionTimestamp !== undefined) return settled;
        const { consumerClusterID } = renew.spec;
        const placement = placementOf(renew, consumerClusterID, namespaces.list());
        if ('outcome' in placement) return reportWait(renew, placement.outcome);
        if (peerOf(renew) !== consumerClusterID) {
          return reportWait(
            renew,
            stalled(
              'ConsumerMismatch',
              `spec.consumerClusterID is ${consumerClusterID}, its label says ${peerOf(renew)}`,
            ),
          );
        }
        const tenant = tenantCache
          .byIndex('cluster', consumerClusterID)
          .find((one) => one.metadata.namespace === renew.metadata.namespace);
        const authParams = tenant?.status?.authParams;
        if (authParams === undefined)
          return reportWait(renew, waiting(`the credentials of Tenant ${consumerClusterID}`, 60_000));
        const recoveryIP = ips.get(proxyRef)?.status?.ip;
        const wanted = { ...renew.status, authParams, ...(recoveryIP && { recoveryIP }) };
        if (!sameJson(renew.status, wanted)) await writeStatus(api, renews, renew, wanted, signal);
        return reportWait(renew, settled);
      },
    },
    { clock, log },
  );
}
