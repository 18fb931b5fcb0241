/** Which NamespaceOffloadings are accepted. Pure; the controllers and the provider check again what can change later. */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { namespaceOffloadingName } from '#shared/domain/liqo-keys.ts';
import { nodeSelectorProblem } from '#shared/domain/node-selector.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import { namingProblem, remoteNameOf } from '../namespaces/remote-name.ts';

export interface OffloadingContext {
  readonly namespace: string;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly clusterId: string;
  /** All NamespaceOffloadings of the cluster. */
  readonly others: readonly NamespaceOffloading[];
}

export function validateNewOffloading({ metadata, spec }: NamespaceOffloading, context: OffloadingContext): Verdict {
  const { namespace, clusterId, others } = context;
  if (metadata.name !== namespaceOffloadingName) {
    return deny(
      'invalid_input',
      `metadata.name is ${JSON.stringify(metadata.name)}: accepted is ${JSON.stringify(namespaceOffloadingName)}, one in each namespace`,
    );
  }
  const naming = namingProblem(namespace, spec, clusterId, context.namespaceLabels);
  if (naming) return deny(naming.code, naming.message);
  const selector = nodeSelectorProblem(spec.clusterSelector);
  if (selector !== undefined) return deny('invalid_input', `spec.clusterSelector.${selector}`);
  const remote = remoteNameOf(namespace, spec, clusterId);
  const holder = others.find(
    (other) =>
      other.metadata.namespace !== namespace &&
      remoteNameOf(other.metadata.namespace ?? '', other.spec, clusterId) === remote,
  );
  if (!holder) return allow;
  return deny(
    'already_exists',
    `the name at the providers would be ${remote}, which namespace ${holder.metadata.namespace} of this cluster has: choose another with namespaceMappingStrategy SelectedName and spec.remoteNamespaceName`,
  );
}

/** An object that is being deleted, or whose spec stays, always passes: finalizers must come off even where today's rules would refuse the object. */
export function validateChangedOffloading(before: NamespaceOffloading, after: NamespaceOffloading): Verdict {
  if (after.metadata.deletionTimestamp) return allow;
  if (before.spec.namespaceMappingStrategy !== after.spec.namespaceMappingStrategy) {
    return immutable(
      'namespaceMappingStrategy',
      before.spec.namespaceMappingStrategy,
      after.spec.namespaceMappingStrategy,
    );
  }
  if ((before.spec.remoteNamespaceName ?? '') !== (after.spec.remoteNamespaceName ?? '')) {
    return immutable('remoteNamespaceName', before.spec.remoteNamespaceName, after.spec.remoteNamespaceName);
  }
  const selector = nodeSelectorProblem(after.spec.clusterSelector);
  if (
    selector !== undefined &&
    JSON.stringify(before.spec.clusterSelector) !== JSON.stringify(after.spec.clusterSelector)
  ) {
    return deny('invalid_input', `spec.clusterSelector.${selector}`);
  }
  const strategy = after.spec.podOffloadingStrategy;
  if (strategy === before.spec.podOffloadingStrategy || strategy === 'LocalAndRemote') return allow;
  return {
    allowed: true,
    warnings: [
      `podOffloadingStrategy ${strategy} holds for new pods: those that exist stay where they are, delete them to move them`,
    ],
  };
}

const immutable = (field: string, before = '', after = ''): Verdict =>
  deny(
    'invalid_input',
    `spec.${field} is immutable (${JSON.stringify(before)}, not ${JSON.stringify(after)}): delete the object and create it again`,
  );
