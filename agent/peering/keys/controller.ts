/** Keeps the cluster's key pair in existence, and drops the pair before a rotation once no credentials need it any more. */
import { keysOfCredentials } from '#agent/model/peer-credentials.ts';
import { keysSecret } from '#agent/model/peering-selections.ts';
import type { OwnKeys } from '#agent/pki/cluster-keys.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { authenticationKeysSecret, keyFields } from '#shared/domain/liqo-keys.ts';
import { settled, waiting } from '#shared/domain/outcome.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { ensureClusterKeys, readKeys } from './ensure-keys.ts';

const isOfPrevious = (own: OwnKeys, { spec }: Identity): boolean =>
  keysOfCredentials(own, spec.authParams) === own.previous;

export function createKeysController({ cluster, config, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = keysSecret(caches, config.systemNamespace);
  const identityCache = caches.cache(identities);
  const controller = createController(
    {
      name: 'keys',
      watches: [watch(cache, () => [authenticationKeysSecret]), watch(identityCache, () => [authenticationKeysSecret])],
      workers: 1,
      async reconcile(_key, signal) {
        await ensureClusterKeys(api, config.systemNamespace, signal);
        const secret = cache.list()[0];
        const own = readKeys(secret);
        if (secret === undefined || own?.previous === undefined) return settled;
        const held = identityCache.list().filter((identity) => isOfPrevious(own, identity));
        if (held.length > 0) {
          const names = held.map(({ metadata, spec }) => `${metadata.name} (${spec.clusterID})`).join(', ');
          return waiting(`credentials for the new key in place of those of Identity ${names}`, 600_000);
        }
        const none = { [keyFields.previousPrivate]: null, [keyFields.previousPublic]: null };
        const { resourceVersion } = secret.metadata;
        await api.mergePatch(secrets, refOf(secret), { metadata: { resourceVersion }, data: none }, {}, signal);
        events.emit(secret, 'Normal', 'KeyRotated', 'every provider knows the new key; the former one is forgotten');
        return settled;
      },
    },
    { clock, log },
  );
  return {
    ...controller,
    run(signal) {
      // Absence makes no event: the first look has to be asked for.
      const running = controller.run(signal);
      controller.enqueue(authenticationKeysSecret);
      return running;
    },
  };
}
