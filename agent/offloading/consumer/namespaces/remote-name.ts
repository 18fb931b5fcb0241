/** The name that a namespace gets at its providers, and which namespace has it when two ask for the same. */
import { name } from '#shared/domain/liqo-keys.ts';
import { isSystemNamespace, remoteNamespaceProblem } from '#shared/domain/system-namespaces.ts';
import type { NamespaceOffloading, NamespaceOffloadingSpec } from '#shared/schema/liqo/namespace-offloading.ts';

type Naming = Pick<NamespaceOffloadingSpec, 'namespaceMappingStrategy' | 'remoteNamespaceName'>;

/** `consumer` is this cluster's ID. An unknown strategy counts as DefaultName, as in Liqo. */
export function remoteNameOf(namespace: string, spec: Partial<Naming>, consumer: string): string {
  switch (spec.namespaceMappingStrategy) {
    case 'EnforceSameName':
      return namespace;
    case 'SelectedName':
      return spec.remoteNamespaceName ?? '';
    default:
      return name.defaultRemoteNamespace(namespace, consumer);
  }
}

/** Undefined when this namespace can be offloaded under its name; otherwise why not and what to do. */
export function namingProblem(
  namespace: string,
  spec: Partial<Naming>,
  consumer: string,
  namespaceLabels: Readonly<Record<string, string>> = {},
): { readonly code: 'namespace_reserved' | 'invalid_input'; readonly message: string } | undefined {
  if (isSystemNamespace(namespace, namespaceLabels)) {
    return {
      code: 'namespace_reserved',
      message: `namespace ${namespace} is a system namespace and cannot be offloaded: choose a namespace of your own`,
    };
  }
  const remote = remoteNameOf(namespace, spec, consumer);
  if (spec.namespaceMappingStrategy === 'SelectedName' && remote === '') {
    return {
      code: 'invalid_input',
      message:
        'spec.remoteNamespaceName is empty: SelectedName needs the name that the namespace shall have at the providers',
    };
  }
  const problem = remoteNamespaceProblem(remote);
  if (problem === undefined) return undefined;
  const field =
    spec.namespaceMappingStrategy === 'SelectedName' ? 'spec.remoteNamespaceName' : 'spec.namespaceMappingStrategy';
  return {
    code: problem.includes('reserved') ? 'namespace_reserved' : 'invalid_input',
    message: `${field}: the name at the providers would be ${problem}; choose another with namespaceMappingStrategy SelectedName and spec.remoteNamespaceName`,
  };
}

/**
 * Of all offloadings that ask for one remote name, the one that has it: the mapped one, else the oldest, else the first by name. The answer does not
 * depend on the asking namespace, so that two never both believe to have won.
 */
export function holderOf(
  remote: string,
  offloadings: readonly NamespaceOffloading[],
  consumer: string,
  isMapped: (namespace: string) => boolean,
): string | undefined {
  const rank = ({ metadata }: NamespaceOffloading): string =>
    `${isMapped(metadata.namespace ?? '') ? 0 : 1} ${metadata.creationTimestamp ?? '9'} ${metadata.namespace}`;
  return offloadings
    .filter(({ metadata, spec }) => remoteNameOf(metadata.namespace ?? '', spec, consumer) === remote)
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1))[0]?.metadata.namespace;
}
