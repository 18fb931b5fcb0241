/** Provider: guests' pods that are on their way out have a deadline, and are hurried at it. */
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { namespaces, pods } from '#shared/domain/core-kinds.ts';
import { keyOf, refOfKey } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { again, settled } from '#shared/domain/outcome.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { offloadedPodCache } from '../model/caches.ts';
import { decide } from './decide.ts';

export function createDepartureController(deps: ControllerDeps & { readonly cluster: Cluster }): Controller {
  const { cluster, clock } = deps;
  const rulebook = createRulebook(cluster.caches);
  const offloaded = offloadedPodCache(cluster.caches);
  const spaces = cluster.caches.cache(namespaces);
  const inNamespace = (name: string): string[] =>
    offloaded
      .list()
      .filter(({ metadata }) => metadata.namespace === name)
      .map(keyOf);

  return createController(
    {
      name: 'departure',
      watches: [
        watch(offloaded, (pod) => {
          const isGoing = spaces.get({ name: pod.metadata.namespace ?? '' })?.metadata.deletionTimestamp !== undefined;
          return isGoing || pod.metadata.deletionTimestamp !== undefined ? [keyOf(pod)] : [];
        }),
        watch(spaces, ({ metadata }) =>
          metadata.deletionTimestamp !== undefined && metadata.annotations?.[annotation.managedByNamespaceMap]
            ? inNamespace(metadata.name)
            : [],
        ),
        watch(rulebook.policies, () =>
          offloaded
            .list()
            .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
            .map(keyOf),
        ),
      ],
      async reconcile(key, signal) {
        const ref = refOfKey(key);
        const pod = offloaded.get(ref);
        if (pod === undefined) return settled;
        const namespace = spaces.get({ name: ref.namespace ?? '' });
        const rules = rulebook.rulesOf(pod.metadata.labels?.[label.origin] ?? '');
        const { maxGracePeriodSeconds: maxGraceSeconds } = rules;
        const decision = decide({ pod, namespace, maxGraceSeconds, nowMs: clock.now() });
        if (decision.do === 'nothing') return settled;
        if (decision.do === 'look') return again(decision.inMs);
        const { uid } = pod.metadata;
        const { graceSeconds, because } = decision;
        await cluster.api.delete(pods, ref, { gracePeriodSeconds: graceSeconds, ...(uid && { uid }) }, signal);
        cluster.events.emit(pod, 'Warning', 'Hurried', `${because}: it has ${graceSeconds} s left`);
        return again(1_000);
      },
    },
    deps,
  );
}
