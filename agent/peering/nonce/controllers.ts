/** Nonces: the provider's are filled in when liqoctl leaves that to us, the consumer's are signed with the key of the cluster. */
import { controlPlaneSubject } from '#agent/model/peer-user.ts';
import { keysSecret, peerOf, peerSecrets, tenantNamespaces } from '#agent/model/peering-selections.ts';
import { placementOf } from '#agent/model/tenant-namespaces.ts';
import { buildCertificateRequest, carriesKeyOf } from '#agent/pki/certificate-request.ts';
import { type OwnKeys, readPublicKey, signSuccession, verifyWith } from '#agent/pki/cluster-keys.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { keyOf, refOf, refOfKey, type Secret } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { readKeys } from '../keys/ensure-keys.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { nonceFault, signNonce } from './nonce-form.ts';

const has = (secret: Secret, name: string): boolean => secret.metadata.labels?.[name] !== undefined;
const dataPatch = (secret: Secret, data: Record<string, string>): unknown => ({
  metadata: { resourceVersion: secret.metadata.resourceVersion },
  data,
});

/** What a signed nonce lacks; undefined when it is complete and by this key. The nonce's text itself is signed, as stored. Fails as `signNonce`. */
export function signedNonceData(
  data: Readonly<Record<string, string>>,
  clusterId: string,
  keys: OwnKeys,
): Record<string, string> | undefined {
  const nonce = Buffer.from(data.nonce ?? '', 'base64');
  const isSigned =
    data.signedNonce !== undefined &&
    verifyWith(readPublicKey(Buffer.from(keys.publicKey)), nonce, Buffer.from(data.signedNonce, 'base64'));
  const hasRequest = data.csr !== undefined && carriesKeyOf(fromBase64(data.csr), keys.privateKey);
  const publicKey = toBase64(keys.publicKey);
  const isHandedOver = keys.previous === undefined || data.succession !== undefined;
  if (isSigned && hasRequest && isHandedOver && data.publicKey === publicKey) return undefined;
  return {
    signedNonce: toBase64(signNonce(keys.privateKey, nonce)),
    csr: toBase64(buildCertificateRequest(controlPlaneSubject(clusterId), keys.privateKey)),
    publicKey,
    // By this a provider takes the new key for ours without anybody's consent.
    ...(keys.previous ? { succession: toBase64(signSuccession(keys.previous, keys)) } : {}),
  };
}

/** Provider: gives a nonce to each Secret that asks for one by its label. */
export function createNonceCreatorController({ cluster, clock, log, ids }: PeeringDeps): Controller {
  const { api, events } = cluster;
  const cache = peerSecrets(cluster.caches);
  const namespaces = tenantNamespaces(cluster.caches);
  const reportWait = createReportWait(events, clock);
  const wanted = (secret: Secret): boolean => has(secret, label.nonce);
  return createController(
    {
      name: 'nonce-creator',
      watches: [
        watch(cache, (secret) => (wanted(secret) ? [keyOf(secret)] : [])),
        watch(namespaces, (namespace) => inNamespace(cache, namespace.metadata.name, wanted)),
      ],
      async reconcile(key, signal) {
        const secret = cache.get(refOfKey(key));
        if (secret === undefined || !wanted(secret) || secret.metadata.deletionTimestamp !== undefined) return settled;
        const placement = placementOf(secret, peerOf(secret), namespaces.list());
        if ('outcome' in placement) return reportWait(secret, placement.outcome);
        if (secret.data?.nonce !== undefined) return reportWait(secret, settled);
        const nonce = toBase64(toBase64(ids.bytes(64)));
        await api.mergePatch(secrets, refOf(secret), dataPatch(secret, { nonce }), {}, signal);
        events.emit(secret, 'Normal', 'NonceGenerated', `nonce generated for ${placement.peer}`);
        return settled;
      },
    },
    { clock, log },
  );
}

/** Consumer: signs, and adds the certificate request and public key that the broker carries over. */
export function createNonceSignerController({ cluster, clusterId, config, clock, log }: PeeringDeps): Controller {
  const { api, events } = cluster;
  const cache = peerSecrets(cluster.caches);
  const namespaces = tenantNamespaces(cluster.caches);
  const keys = keysSecret(cluster.caches, config.systemNamespace);
  const reportWait = createReportWait(events, clock);
  const wanted = (secret: Secret): boolean => has(secret, label.signedNonce);
  return createController(
    {
      name: 'nonce-signer',
      watches: [
        watch(cache, (secret) => (wanted(secret) ? [keyOf(secret)] : [])),
        watch(namespaces, (namespace) => inNamespace(cache, namespace.metadata.name, wanted)),
        watch(keys, () => cache.list().filter(wanted).map(keyOf)),
      ],
      async reconcile(key, signal) {
        const secret = cache.get(refOfKey(key));
        if (secret === undefined || !wanted(secret) || secret.metadata.deletionTimestamp !== undefined) return settled;
        const placement = placementOf(secret, peerOf(secret), namespaces.list());
        if ('outcome' in placement) return reportWait(secret, placement.outcome);
        if (!secret.data?.nonce)
          return reportWait(secret, waiting(`the nonce of ${placement.peer} in data.nonce`, 60_000));
        const fault = nonceFault(Buffer.from(secret.data.nonce, 'base64'));
        if (fault !== undefined) return reportWait(secret, stalled('NonceRefused', fault));
        const own = readKeys(keys.list()[0]);
        if (own === undefined) return reportWait(secret, waiting('the key pair of this cluster', 10_000));
        const data = signedNonceData(secret.data, clusterId, own);
        if (data === undefined) return reportWait(secret, settled);
        await api.mergePatch(secrets, refOf(secret), dataPatch(secret, data), {}, signal);
        events.emit(secret, 'Normal', 'NonceSigned', `nonce of ${placement.peer} signed`);
        return reportWait(secret, settled);
      },
    },
    { clock, log },
  );
}

const inNamespace = (
  cache: ReturnType<typeof peerSecrets>,
  namespace: string,
  wanted: (secret: Secret) => boolean,
): string[] =>
  cache
    .list()
    .filter((secret) => secret.metadata.namespace === namespace && wanted(secret))
    .map(keyOf);
