/** Carries out a decision about one NamespaceOffloading, in the order that deletion needs: label, mappings, status, finalizer. */
import { isDeepStrictEqual } from 'node:util';
import type { KubeApi } from '#kube/model/types.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { finalizer, label } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import {
  type NamespaceOffloading,
  type NamespaceOffloadingStatus,
  namespaceOffloadings,
} from '#shared/schema/liqo/namespace-offloading.ts';
import type { Decision } from './decide.ts';

export async function apply(api: KubeApi, offloading: NamespaceOffloading, decision: Decision, signal: AbortSignal) {
  const namespace = offloading.metadata.namespace ?? '';
  // The finalizer comes before anything that it has to clean up.
  if (decision.finalizer === 'add') await setFinalizer(api, offloading, true, signal);
  if (decision.label !== undefined) {
    const patch = { metadata: { labels: { [label.schedulingEnabled]: decision.label ? 'true' : null } } };
    await ifPresent(api.mergePatch(namespaces, { name: namespace }, patch, {}, signal));
  }
  for (const { map, remote } of decision.mappings) {
    await ifPresent(
      api.mergePatch(namespaceMaps, map, { spec: { desiredMapping: { [namespace]: remote } } }, {}, signal),
    );
  }
  if (decision.finalizer !== 'remove' && !isDeepStrictEqual(offloading.status, decision.status)) {
    const patch = { status: withNulls(offloading.status, decision.status) };
    await ifPresent(api.mergePatch(namespaceOffloadings, refOf(offloading), patch, { subresource: 'status' }, signal));
  }
  if (decision.finalizer === 'remove') await setFinalizer(api, offloading, false, signal);
}

/** A merge patch that leaves nothing of what was there before and is not wanted any more. */
function withNulls(before: NamespaceOffloadingStatus | undefined, after: NamespaceOffloadingStatus) {
  const gone = Object.keys(before?.remoteNamespacesConditions ?? {}).map((id) => [id, null]);
  return {
    ...after,
    remoteNamespacesConditions: { ...Object.fromEntries(gone), ...after.remoteNamespacesConditions },
  };
}

/** Conditional on the version the decision was made on: other finalizers of the list are not ours to lose. */
async function setFinalizer(api: KubeApi, offloading: NamespaceOffloading, present: boolean, signal: AbortSignal) {
  const { metadata } = offloading;
  const others = (metadata.finalizers ?? []).filter((f) => f !== finalizer.namespaceOffloading);
  const patch = {
    metadata: {
      finalizers: present ? [...others, finalizer.namespaceOffloading] : others,
      resourceVersion: metadata.resourceVersion,
    },
  };
  await ifPresent(api.mergePatch(namespaceOffloadings, refOf(offloading), patch, {}, signal));
}

/** What is gone needs no change. */
async function ifPresent(write: Promise<unknown>): Promise<void> {
  await write.catch((error: unknown) => {
    if (codeOf(error) !== 'kube_not_found') throw error;
  });
}
