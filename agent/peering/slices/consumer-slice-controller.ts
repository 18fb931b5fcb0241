/** Consumer: completes a slice that is to be replicated with both cluster IDs and the request for its certificate. */

import { keysOfCredentials } from '#agent/model/peer-credentials.ts';
import { sliceSubject } from '#agent/model/peer-user.ts';
import { keysSecret, peerOf, tenantNamespaces } from '#agent/model/peering-selections.ts';
import { consumerRefusal } from '#agent/model/policies.ts';
import { isOriginal, isReplica } from '#agent/model/slice-roles.ts';
import { peerOfNamespace, placementOf } from '#agent/model/tenant-namespaces.ts';
import { buildCertificateRequest, carriesKeyOf } from '#agent/pki/certificate-request.ts';
import type { OwnKeys } from '#agent/pki/cluster-keys.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { keyOf, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { readKeys } from '../keys/ensure-keys.ts';
import type { PeeringDeps } from '../model/deps.ts';

/** A provider that has not yet certified our new key would deny a slice that is requested with it. */
function acceptedKey(own: OwnKeys, identity: Identity | undefined): string {
  return keysOfCredentials(own, identity?.spec.authParams).privateKey;
}

/** What the spec lacks; undefined when it is complete. A certificate request for a former key of ours is replaced. */
export function completedSpec(
  slice: ResourceSlice,
  clusterId: string,
  namespacePeer: string | undefined,
  privateKey: string,
): Partial<ResourceSlice['spec']> | undefined {
  const { consumerClusterID, providerClusterID, csr } = slice.spec;
  const provider = providerClusterID ?? peerOf(slice) ?? namespacePeer;
  const hasRequest = csr !== undefined && csr !== '' && carriesKeyOf(fromBase64(csr), privateKey);
  const spec: Partial<ResourceSlice['spec']> = {
    ...(consumerClusterID === undefined ? { consumerClusterID: clusterId } : {}),
    ...(providerClusterID === undefined && provider !== undefined ? { providerClusterID: provider } : {}),
    ...(hasRequest
      ? {}
      : { csr: toBase64(buildCertificateRequest(sliceSubject(slice.metadata.name, clusterId), privateKey)) }),
  };
  return Object.keys(spec).length === 0 ? undefined : spec;
}

/**
 * In a tenant namespace a slice is for the peer of that namespace: what its manifest left out is filled in. Undefined: nothing to fill in, or it
 * says something else, which is not for us to change.
 */
export function missingLabels(
  slice: ResourceSlice,
  namespacePeer: string | undefined,
): Readonly<Record<string, string>> | undefined {
  if (namespacePeer === undefined || isReplica(slice)) return undefined;
  const wanted = {
    [label.replication]: 'true',
    [label.remoteId]: namespacePeer,
    [label.remoteClusterId]: namespacePeer,
  };
  const { labels = {} } = slice.metadata;
  const missing = Object.entries(wanted).filter(([key]) => labels[key] === undefined);
  const agrees = Object.entries(wanted).every(([key, value]) => labels[key] === undefined || labels[key] === value);
  // A slice with any of the marks of a copy, even incomplete ones, is not ours.
  const isMarked = labels[label.replicated] !== undefined || labels[label.originId] !== undefined;
  return missing.length === 0 || !agrees || isMarked ? undefined : Object.fromEntries(missing);
}

export function createLocalSliceController({ cluster, clusterId, config, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = caches.cache(resourceSlices);
  const keys = keysSecret(caches, config.systemNamespace);
  const namespaces = tenantNamespaces(caches);
  const identityCache = caches.cache(identities);
  const policies = caches.cache(peeringPolicies);
  const reportWait = createReportWait(events, clock);
  const identityOf = (slice: ResourceSlice): Identity | undefined =>
    identityCache
      .list()
      .find(({ metadata, spec }) => spec.type === 'ControlPlane' && metadata.namespace === slice.metadata.namespace);
  return createController(
    {
      name: 'local-slice',
      watches: [
        watch(cache, (slice) => (isReplica(slice) ? [] : [keyOf(slice)])),
        watch(namespaces, ({ metadata }) =>
          cache
            .list()
            .filter((slice) => slice.metadata.namespace === metadata.name)
            .map(keyOf),
        ),
        watch(policies, () => cache.list().filter(isOriginal).map(keyOf)),
        watch(keys, () => cache.list().filter(isOriginal).map(keyOf)),
        // Its certificate says which of our keys the provider knows.
        watch(identityCache, ({ metadata }) =>
          cache
            .list()
            .filter((slice) => slice.metadata.namespace === metadata.namespace)
            .map(keyOf),
        ),
      ],
      async reconcile(key, signal) {
        const found = cache.get(refOfKey(key));
        if (found === undefined || isReplica(found) || found.metadata.deletionTimestamp !== undefined) return settled;
        const labels = missingLabels(found, peerOfNamespace(namespaces.list(), found.metadata.namespace));
        const slice =
          labels === undefined
            ? found
            : await api.mergePatch(resourceSlices, refOf(found), { metadata: { labels } }, {}, signal);
        if (!isOriginal(slice)) return settled;
        const placement = placementOf(slice, slice.metadata.labels?.[label.remoteId], namespaces.list());
        if ('outcome' in placement && placement.outcome.kind === 'stalled') return reportWait(slice, placement.outcome);
        const refusal = consumerRefusal(policies.list(), slice.metadata.labels?.[label.remoteId] ?? '');
        if (refusal !== undefined) return reportWait(slice, stalled('PolicyRefused', refusal));
        const own = readKeys(keys.list()[0]);
        if (own === undefined) return reportWait(slice, waiting('the key pair of this cluster', 10_000));
        const spec = completedSpec(
          slice,
          clusterId,
          peerOfNamespace(namespaces.list(), slice.metadata.namespace),
          acceptedKey(own, identityOf(slice)),
        );
        if (spec !== undefined) {
          const { resourceVersion } = slice.metadata;
          await api.mergePatch(resourceSlices, refOf(slice), { metadata: { resourceVersion }, spec }, {}, signal);
        }
        const provider = spec?.providerClusterID ?? slice.spec.providerClusterID;
        const remote = slice.metadata.labels?.[label.remoteId];
        if (provider !== remote) {
          return reportWait(
            slice,
            stalled(
              'ProviderMismatch',
              `spec.providerClusterID is ${provider}, but label ${label.remoteId} is ${remote}; make them equal`,
            ),
          );
        }
        return reportWait(slice, settled);
      },
    },
    { clock, log },
  );
}
