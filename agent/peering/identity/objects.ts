/** Objects by which a consumer holds its credentials: the Identity of a slice and the kubeconfig Secret of any Identity. */
import { toBase64 } from '#agent/pki/pem.ts';
import type { Applied } from '#kube/model/types.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type Secret } from '#shared/domain/kube-object.ts';
import { annotation, label, name } from '#shared/domain/liqo-keys.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';

export function buildSliceIdentity(slice: ResourceSlice, provider: string, authParams: AuthParams): Applied<Identity> {
  return {
    apiVersion: apiVersionOf(identities),
    kind: identities.kind,
    metadata: {
      name: name.sliceIdentity(slice.metadata.name),
      namespace: slice.metadata.namespace ?? '',
      labels: {
        [label.managed]: 'true',
        [label.remoteClusterId]: provider,
        [label.resourceSliceName]: slice.metadata.name,
      },
      ownerReferences: [ownerOf(resourceSlices, slice)],
    },
    spec: { clusterID: provider, type: 'ResourceSlice', authParams },
  };
}

export function buildKubeconfigSecret(identity: Identity, kubeconfig: string): Applied<Secret> {
  const { type, clusterID, namespace } = identity.spec;
  return {
    apiVersion: apiVersionOf(secrets),
    kind: secrets.kind,
    metadata: {
      name: name.kubeconfigSecret(identity.metadata.name),
      namespace: identity.metadata.namespace ?? '',
      labels: { [label.managed]: 'true', [label.remoteClusterId]: clusterID, [label.identityType]: type },
      ...(type === 'ControlPlane' && namespace
        ? { annotations: { [annotation.remoteTenantNamespace]: namespace } }
        : {}),
      ownerReferences: [ownerOf(identities, identity)],
    },
    data: { kubeconfig: toBase64(kubeconfig) },
  };
}
