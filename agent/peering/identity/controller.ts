/** Consumer: each Identity becomes a kubeconfig Secret, rebuilt whenever the identity or the key pair changes. */
import { isAccount } from '#agent/model/peer-accounts.ts';
import { credentialOf, keysOfCredentials } from '#agent/model/peer-credentials.ts';
import { keysSecret, peerOf, peerSecrets, tenantNamespaces } from '#agent/model/peering-selections.ts';
import type { OwnKeys } from '#agent/pki/cluster-keys.ts';
import { openSealedToken } from '#agent/pki/sealed-token.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Applied, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { applyWanted, deleteObject, writeStatus } from '#kube/writes/write-if-changed.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { keyOf, type ObjectRef, refOfKey, type Secret } from '#shared/domain/kube-object.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { readKeys } from '../keys/ensure-keys.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { refusedEndpoint } from './endpoints.ts';
import { accountOfToken, buildKubeconfig } from './kubeconfig.ts';
import { buildKubeconfigSecret } from './objects.ts';

/** Key of the Identity that a Secret belongs to. */
const identityKeys = (secret: Secret): string[] => {
  const owner = ownerName(identities, secret);
  return owner === undefined ? [] : [`${secret.metadata.namespace}/${owner}`];
};

export function createIdentityController({ cluster, config, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = caches.cache(identities);
  const secretCache = peerSecrets(caches);
  const keys = keysSecret(caches, config.systemNamespace);
  const configurations = caches.cache(networkKinds.configurations);
  const namespaceCache = tenantNamespaces(caches);
  const reportWait = createReportWait(events, clock);

  /** The garbage collector would do it too, once it has noticed that the kind exists. */
  async function orphaned(ref: ObjectRef, signal: AbortSignal): Promise<void> {
    const { namespace = '' } = ref;
    const secret = secretCache.get({ namespace, name: name.kubeconfigSecret(ref.name) });
    if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) return;
    if (ownerName(identities, secret) !== ref.name) return;
    if ((await api.get(identities, ref, signal)) === undefined) await deleteObject(api, secrets, secret, signal);
  }

  /** A sealed token is opened to see whether it is one for this Identity; what was opened is dropped. */
  async function secretOf(
    identity: Identity,
    own: OwnKeys,
  ): Promise<{ secret: Applied<Secret> } | { outcome: Outcome }> {
    try {
      const { authParams } = identity.spec;
      const { privateKey } = keysOfCredentials(own, authParams);
      const credential = credentialOf(authParams);
      if (credential?.kind === 'token') {
        const account = accountOfToken(identity);
        await openSealedToken(credential.sealed, own, { isFor: (user) => isAccount(user, account) });
      }
      const kubeconfig = buildKubeconfig(identity, privateKey);
      if (kubeconfig !== undefined) return { secret: buildKubeconfigSecret(identity, kubeconfig) };
      return { outcome: waiting("the provider's credentials and API server in spec.authParams", 60_000) };
    } catch (error) {
      if (error instanceof AppError) return { outcome: stalled('InvalidIdentity', error.message) };
      throw error;
    }
  }

  /** Nothing is said about credentials that are in use: a link that is being taken down does not take them along. */
  function refusal(identity: Identity, wanted: Applied<Secret>): string | undefined {
    const { namespace = '' } = identity.metadata;
    const current = secretCache.get({ namespace, name: wanted.metadata.name });
    if (current?.data?.kubeconfig !== undefined && current.data.kubeconfig === wanted.data?.kubeconfig)
      return undefined;
    const space = namespaceCache.get({ name: namespace }) ?? { metadata: { name: namespace } };
    const link = configurations
      .list()
      .find((one) => one.metadata.namespace === namespace && peerOf(one) === identity.spec.clusterID);
    return refusedEndpoint(identity, space, link);
  }

  const inNamespace = (name: string | undefined): string[] =>
    cache
      .list()
      .filter(({ metadata }) => metadata.namespace === name)
      .map(keyOf);

  return createController(
    {
      name: 'identity',
      watches: [
        watch(cache, (identity) => [keyOf(identity)]),
        watch(secretCache, identityKeys),
        watch(keys, () => cache.list().map(keyOf)),
        watch(configurations, ({ metadata }) => inNamespace(metadata.namespace)),
        watch(namespaceCache, ({ metadata }) => inNamespace(metadata.name)),
      ],
      async reconcile(key, signal) {
        const ref = refOfKey(key);
        const identity = cache.get(ref);
        if (identity === undefined) {
          await orphaned(ref, signal);
          return settled;
        }
        if (identity.metadata.deletionTimestamp !== undefined) return settled;
        const own = readKeys(keys.list()[0]);
        if (own === undefined) return reportWait(identity, waiting('the key pair of this cluster', 10_000));
        const made = await secretOf(identity, own);
        if ('outcome' in made) return reportWait(identity, made.outcome);
        const wanted = made.secret;
        const refused = refusal(identity, wanted);
        if (refused !== undefined) return reportWait(identity, stalled('EndpointRefused', refused));
        const secretName = wanted.metadata.name;
        const current = secretCache.get({ namespace: identity.metadata.namespace ?? '', name: secretName });
        if (current?.metadata.deletionTimestamp !== undefined) {
          return reportWait(identity, waiting(`Secret ${secretName} of an earlier identity to go`, 5_000));
        }
        await applyWanted(api, secrets, current, wanted, ({ data }) => data, signal);
        await writeStatus(
          api,
          identities,
          identity,
          { ...identity.status, kubeconfigSecretRef: { name: secretName } },
          signal,
        );
        return reportWait(identity, settled);
      },
    },
    { clock, log },
  );
}
