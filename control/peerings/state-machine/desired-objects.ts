/** Builds the objects of a peering that the broker asks for: the three exchanges of docs/design/principles.md#which-exchanges-make-a-peering. */
import { namespaces, secrets } from '#shared/domain/core-kinds.ts';
import { annotation, isthmusAnnotation, label, name } from '#shared/domain/liqo-keys.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import type { Issued, PeeringSpec, Signed } from '../../model/peering-records.ts';
import { manifest } from '../core/manifest.ts';

/** The names that a peering's objects have, in one place. */
export const peeringNames = ({ consumer, provider }: Pick<PeeringSpec, 'consumer' | 'provider'>) => ({
  /** The virtual node is called like it. */
  slice: provider,
  identity: name.controlPlaneIdentity(provider),
  tenant: consumer,
  consumerNamespace: name.tenantNamespace(provider),
  providerNamespace: name.tenantNamespace(consumer),
});

const tenantNamespace = (peer: string): KubeManifest =>
  manifest(namespaces, {
    name: name.tenantNamespace(peer),
    labels: { [label.remoteClusterId]: peer, [label.tenantNamespace]: 'true' },
  });

function nonceSecret(peer: string, secret: string, mark: string, nonce: string): KubeManifest {
  const namespace = name.tenantNamespace(peer);
  return manifest(
    secrets,
    { name: secret, namespace, labels: { [label.remoteClusterId]: peer, [mark]: 'true' } },
    { data: { nonce } },
  );
}

/** In order: what an object needs stands before it. */
export function consumerObjects(spec: PeeringSpec, issued: Issued | undefined): readonly KubeManifest[] {
  const { provider } = spec;
  const { slice, identity, consumerNamespace: namespace } = peeringNames(spec);
  const peer = { [label.remoteClusterId]: provider };
  const objects = [
    tenantNamespace(provider),
    nonceSecret(provider, name.signedNonceSecret, label.signedNonce, spec.nonce),
    manifest(
      resourceSlices,
      {
        name: slice,
        namespace,
        labels: { ...peer, [label.replication]: 'true', [label.remoteId]: provider },
        annotations: { [annotation.createVirtualNode]: 'true' },
      },
      { spec: { class: spec.class, providerClusterID: provider, resources: spec.resources } },
    ),
  ];
  if (issued) {
    const { authParams, tenantNamespace: theirs } = issued;
    objects.push(
      manifest(
        identities,
        { name: identity, namespace, labels: peer },
        { spec: { clusterID: provider, type: 'ControlPlane', authParams, namespace: theirs } },
      ),
    );
  }
  return objects;
}

/**
 * The Tenant carries no `tenantCondition`: cordoning and draining are the provider's administrator's, and stay as set. `proxyUrl`: where the
 * consumer reaches the provider's API server through the link.
 */
export function providerObjects(
  spec: PeeringSpec,
  signed: Signed | undefined,
  proxyUrl?: string,
): readonly KubeManifest[] {
  const { consumer } = spec;
  const { tenant, providerNamespace: namespace } = peeringNames(spec);
  const objects = [tenantNamespace(consumer), nonceSecret(consumer, name.nonceSecret, label.nonce, spec.nonce)];
  if (signed) {
    objects.push(
      manifest(
        tenants,
        {
          name: tenant,
          namespace,
          labels: { [label.remoteClusterId]: consumer },
          ...(signed.succession ? { annotations: { [isthmusAnnotation.keySuccession]: signed.succession } } : {}),
        },
        {
          spec: {
            clusterID: consumer,
            publicKey: signed.publicKey,
            csr: signed.csr,
            signature: signed.signedNonce,
            ...(proxyUrl === undefined ? {} : { proxyURL: proxyUrl }),
          },
        },
      ),
    );
  }
  return objects;
}
