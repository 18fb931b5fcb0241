/**
 * Consumer: once its certificate or token has ended, nothing can ask the provider's API server for the next one. The link stands all the same, since its
 * keys do not end, and the provider hands the next one out there (docs/ownership.md).
 */
import { createPrivateKey } from 'node:crypto';
import { accountFor, isAccount } from '#agent/model/peer-accounts.ts';
import { keysOfCredentials } from '#agent/model/peer-credentials.ts';
import { keysSecret } from '#agent/model/peering-selections.ts';
import type { OwnKeys } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { proxyTokens } from '#agent/pki/proxy-token.ts';
import { openSealedToken, readSealedToken } from '#agent/pki/sealed-token.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { type KubeObject, keyOf, refOfKey } from '#shared/domain/kube-object.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { readKeys } from '../keys/ensure-keys.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { endOf, isControlPlane, objection, recoveryHost } from './decide.ts';
import { askForCertificate } from './fetch-certificate.ts';
import { takeOver } from './take-over.ts';

const everyMs = 3_000;
const longestMs = 6 * 3_600_000;

export interface RecoveryDeps extends PeeringDeps {
  /** Where providers listen; the well-known port unless told. */
  readonly recoveryPort?: number;
}

export function createRecoveryController(deps: RecoveryDeps): Controller {
  const { cluster, clusterId, config, clock, ids, log, recoveryPort: port = networkPort.apiServerProxy } = deps;
  const { caches, events } = cluster;
  const cache = caches.cache(identities);
  const renewCache = caches.cache(renews);
  const configurations = caches.cache(networkKinds.configurations);
  const connections = caches.cache(networkKinds.connections);
  const keys = keysSecret(caches, config.systemNamespace);
  const reportWait = createReportWait(events, clock);

  const tokensOf = (identity: Identity, own: OwnKeys) => {
    const held = keysOfCredentials(own, identity.spec.authParams);
    const privateKey = createPrivateKey(held.privateKey);
    if (privateKey.asymmetricKeyType !== 'ed25519') return undefined;
    const token = proxyTokens({
      consumer: clusterId,
      privateKey,
      nowMs: () => clock.now(),
      newId: () => ids.next('jti'),
    });
    return (nonce: string): Promise<string> => token(identity.spec.clusterID, nonce);
  };

  /** Retries over the link without a limit: a provider may be back at any moment, even after a week. */
  async function recover(identity: Identity, host: string, own: OwnKeys, signal: AbortSignal): Promise<Outcome> {
    const token = tokensOf(identity, own);
    if (token === undefined) return settled;
    const provider = identity.spec.clusterID;
    const wait = (why: string) =>
      waiting(`${provider} to hand out the next credentials through the link, since ours has ended: ${why}`, everyMs);
    try {
      const answer = await askForCertificate({ host, port }, token, signal);
      const sealed = readSealedToken(answer);
      const why =
        sealed === undefined
          ? objection(answer, identity, clock.now())
          : sealed.endMs <= clock.now()
            ? 'it has ended, too'
            : await refusalOf(answer, identity, own);
      if (why !== undefined) return wait(`of what it handed out, ${why}`);
      const next =
        sealed === undefined
          ? { signedCRT: toBase64(answer) }
          : { sealedToken: answer, tokenExpiration: new Date(sealed.endMs).toISOString() };
      await takeOver(cluster, identity, next, 'through the link', signal);
      return settled;
    } catch (error) {
      if (codeOf(error) === 'kube_unreachable') return wait((error as Error).message);
      throw error;
    }
  }

  /** Why a sealed token is none for this Identity. */
  async function refusalOf(sealed: string, identity: Identity, own: OwnKeys): Promise<string | undefined> {
    const account = accountFor(identity);
    if (account === undefined) return 'the token cannot be judged: spec.namespace of the Identity is missing';
    try {
      await openSealedToken(sealed, own, { isFor: (user) => isAccount(user, account) });
      return undefined;
    } catch (error) {
      if (error instanceof AppError) return error.message;
      throw error;
    }
  }

  const beside = ({ metadata }: KubeObject): string[] =>
    cache
      .list()
      .filter((identity) => identity.metadata.namespace === metadata.namespace)
      .map(keyOf);

  return createController(
    {
      name: 'certificate-recovery',
      watches: [
        watch(cache, (identity) => [keyOf(identity)]),
        watch(renewCache, (renew) => [keyOf(renew)]),
        watch(configurations, beside),
        watch(connections, beside),
        watch(keys, () => cache.list().map(keyOf)),
      ],
      async reconcile(key, signal) {
        const identity = cache.get(refOfKey(key));
        if (identity === undefined || !isControlPlane(identity) || identity.metadata.deletionTimestamp !== undefined)
          return settled;
        const endMs = endOf(identity);
        if (endMs === undefined) return settled;
        const leftMs = endMs - clock.now();
        if (leftMs > 0) return reportWait(identity, again(Math.min(leftMs + 1_000, longestMs)));
        const configuration = configurations
          .list()
          .find(({ metadata }) => metadata.namespace === identity.metadata.namespace);
        const host = recoveryHost(renewCache.get(refOfKey(key)), configuration);
        const own = readKeys(keys.list()[0]);
        if (host === undefined || own === undefined) return settled;
        return reportWait(identity, await recover(identity, host, own, signal));
      },
    },
    { clock, log },
  );
}
