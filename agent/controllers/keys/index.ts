/** Keeps the cluster's key pair in existence. */
import { createController, watch } from '#agent/kube/controller.ts';
import type { Controller } from '#agent/kube/types.ts';
import { authenticationKeysSecret } from '#shared/domain/liqo-keys.ts';
import { settled } from '#shared/domain/outcome.ts';
import { keysSecret } from '../peering-caches.ts';
import type { PeeringDeps } from '../peering-deps.ts';
import { ensureClusterKeys } from './ensure-keys.ts';

export function createKeysController({ cluster, config, clock, log }: PeeringDeps): Controller {
  const cache = keysSecret(cluster.caches, config.systemNamespace);
  const controller = createController(
    {
      name: 'keys',
      watches: [watch(cache, () => [authenticationKeysSecret])],
      workers: 1,
      async reconcile(_key, signal) {
        await ensureClusterKeys(cluster.api, config.systemNamespace, signal);
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
