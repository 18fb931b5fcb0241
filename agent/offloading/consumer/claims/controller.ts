/** Consumer side: explains on a claim of a class of this cluster that it waits for a volume on a virtual node, where none will be made. */
import { peerOf, virtualNodeNodes } from '#agent/model/peering-selections.ts';
import { allClaims, nodeOf } from '#agent/storage/model/claims.ts';
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { keyOf, namespaceOfKey, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { again, settled } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { decide, notOffloaded } from './decide.ts';

export interface OffloadedClaimDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

const staleMs = 100;
export function createOffloadedClaimController(deps: OffloadedClaimDeps): Controller {
  const { api, caches, events } = deps.cluster;
  const claims = allClaims(caches);
  const nodes = virtualNodeNodes(caches);
  const providerOf = (name: string): string | undefined => {
    const node = nodes.get({ name });
    return node && (peerOf(node) ?? name);
  };
  return createController(
    {
      name: 'offloaded-claim',
      ownerOf: namespaceOfKey,
      watches: [
        watch(claims, (claim) => ((nodeOf(claim) ?? claim.status?.conditions) ? [keyOf(claim)] : [])),
        watch(nodes, ({ metadata }) => claims.byIndex('node', metadata.name).map(keyOf)),
      ],
      async reconcile(key, signal) {
        const claim = claims.get(refOfKey(key));
        if (!claim) return settled;
        const { conditions, message } = decide(claim, providerOf, deps.clock.now());
        if (!conditions) return settled;
        const { uid, resourceVersion } = claim.metadata;
        const body = { metadata: { uid, resourceVersion }, status: { conditions } };
        try {
          const options = { subresource: 'status', answer: 'metadata' } as const;
          await api.mergePatch(persistentVolumeClaims, refOf(claim), body, options, signal);
        } catch (error) {
          const code = codeOf(error);
          if (code === 'kube_not_found') return settled;
          if (code === 'kube_conflict') return again(staleMs);
          throw error;
        }
        if (message !== undefined) events.emit(claim, 'Warning', notOffloaded, message);
        return settled;
      },
    },
    deps,
  );
}
