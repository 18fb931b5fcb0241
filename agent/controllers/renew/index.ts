/** Renewal of control-plane certificates: the consumer keeps one standing Renew, the provider answers it, the consumer takes the answer over. */
import { ownerName } from '#agent/forge/owner.ts';
import { forgeRenew } from '#agent/forge/renew.ts';
import { createController, watch } from '#agent/kube/controller.ts';
import type { Controller } from '#agent/kube/types.ts';
import { isNewer } from '#agent/pki/certificate.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { type KubeObject, keyOf, type ObjectRef, refOfKey } from '#shared/domain/kube-object.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { settled, stalled, waiting } from '#shared/domain/outcome.ts';
import type { AuthParams } from '#shared/schema/fields.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { type Renew, renews } from '#shared/schema/liqo/renew.ts';
import { createExplain } from '../explain.ts';
import { peerOf, tenantNamespaces, tenantsByCluster } from '../peering-caches.ts';
import type { PeeringDeps } from '../peering-deps.ts';
import { applyWanted, deleteObject, sameJson, writeStatus } from '../peering-writes.ts';
import { isReplica } from '../slice-roles.ts';
import { placementOf } from '../tenant-namespaces.ts';

/** The credentials that a provider's answer brings; undefined: nothing newer. Pure. */
export function renewedParams(identity: Identity, renew: Renew | undefined): AuthParams | undefined {
  const answer = renew?.status?.authParams;
  if (answer?.signedCRT === undefined) return undefined;
  const current = identity.spec.authParams.signedCRT;
  if (answer.signedCRT === current) return undefined;
  try {
    return isNewer(fromBase64(answer.signedCRT), current === undefined ? undefined : fromBase64(current))
      ? answer
      : undefined;
  } catch {
    // An answer that is no certificate renews nothing; a current one that is none loses to any certificate.
    return parses(answer.signedCRT) ? answer : undefined;
  }
}

const parses = (certificate: string): boolean => {
  try {
    return isNewer(fromBase64(certificate), undefined);
  } catch {
    return false;
  }
};

const isControlPlane = (identity: Identity): boolean => identity.spec.type === 'ControlPlane';
const identityKeys = (renew: KubeObject): string[] => {
  const owner = ownerName(identities, renew);
  return owner === undefined ? [] : [`${renew.metadata.namespace}/${owner}`];
};

export function createLocalRenewController({ cluster, clusterId, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
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
          await applyWanted(api, renews, renew, forgeRenew(identity, clusterId), ({ spec }) => spec, signal);
        }
        const authParams = renewedParams(identity, renew);
        if (authParams === undefined) return settled;
        const { apiVersion, kind, metadata } = identity;
        const change = {
          apiVersion,
          kind,
          metadata: { name: metadata.name, namespace: metadata.namespace ?? '' },
          spec: { authParams: { ...identity.spec.authParams, ...authParams } },
        };
        await api.apply(identities, change, { fieldManager: fieldManager.agent }, signal);
        events.emit(identity, 'Normal', 'CertificateRenewed', `certificate for ${identity.spec.clusterID} renewed`);
        return settled;
      },
    },
    { clock, log },
  );
}

export function createRemoteRenewController({ cluster, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = caches.cache(renews);
  const tenantCache = tenantsByCluster(caches);
  const namespaces = tenantNamespaces(caches);
  const explain = createExplain(events, clock);
  return createController(
    {
      name: 'remote-renew',
      watches: [
        watch(cache, (renew) => (isReplica(renew) ? [keyOf(renew)] : [])),
        watch(tenantCache, (tenant) =>
          cache
            .list()
            .filter((renew) => isReplica(renew) && renew.metadata.namespace === tenant.metadata.namespace)
            .map(keyOf),
        ),
      ],
      async reconcile(key, signal) {
        const renew = cache.get(refOfKey(key));
        if (renew === undefined || !isReplica(renew) || renew.metadata.deletionTimestamp !== undefined) return settled;
        const { consumerClusterID } = renew.spec;
        const placement = placementOf(renew, consumerClusterID, namespaces.list());
        if ('outcome' in placement) return explain(renew, placement.outcome);
        if (peerOf(renew) !== consumerClusterID) {
          return explain(
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
          return explain(renew, waiting(`the credentials of Tenant ${consumerClusterID}`, 60_000));
        if (!sameJson(renew.status?.authParams, authParams)) {
          await writeStatus(api, renews, renew, { ...renew.status, authParams }, signal);
        }
        return explain(renew, settled);
      },
    },
    { clock, log },
  );
}
