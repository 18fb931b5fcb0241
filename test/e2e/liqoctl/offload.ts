/** `liqoctl offload namespace` and `unoffload namespace` (docs/design/control-plane.md#what-does-liqoctl-need). */
import { namespaces } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type NodeSelector } from '#shared/domain/kube-object.ts';
import {
  type NamespaceOffloading,
  type NamespaceOffloadingSpec,
  namespaceOffloadings,
} from '#shared/schema/liqo/namespace-offloading.ts';
import { createOrUpdate, createWaits, type Target, type Waited } from './requests.ts';

export interface OffloadFlags {
  readonly strategy?: 'LocalAndRemote' | 'Remote' | 'Local';
  readonly mapping?: 'DefaultName' | 'EnforceSameName' | 'SelectedName';
  readonly remoteName?: string;
  /** Of `--selector`, each with `matchLabels` as `In` expressions. */
  readonly terms?: NodeSelector['nodeSelectorTerms'];
}

export interface Offloaded {
  readonly waited: readonly Waited[];
  /** When no cluster was selected. */
  readonly warning?: string;
}

const [offloadTimeoutMs, unoffloadTimeoutMs, pollMs] = [20_000, 120_000, 100];
const name = 'offloading';

export async function offloadNamespace(
  { api }: Target,
  namespace: string,
  flags: OffloadFlags = {},
): Promise<Offloaded> {
  if ((await api.get(namespaces, { name: namespace })) === undefined)
    throw new Error(`namespace ${namespace} not found`);
  const { strategy = 'LocalAndRemote', mapping = 'DefaultName', remoteName, terms = [] } = flags;
  const spec: NamespaceOffloadingSpec = {
    podOffloadingStrategy: strategy,
    namespaceMappingStrategy: mapping,
    clusterSelector: { nodeSelectorTerms: terms },
    ...(remoteName === undefined ? {} : { remoteNamespaceName: remoteName }),
  };
  const wanted: NamespaceOffloading = {
    apiVersion: apiVersionOf(namespaceOffloadings),
    kind: 'NamespaceOffloading',
    metadata: { name, namespace },
    spec,
  };
  await createOrUpdate(api, namespaceOffloadings, wanted, 'spec');
  const waits = createWaits(offloadTimeoutMs, pollMs);
  const phase = await waits.until('offloading', async () => {
    const found = await api.get(namespaceOffloadings, { namespace, name });
    if (found?.status?.observedGeneration !== found?.metadata.generation) return undefined;
    const is = found?.status?.offloadingPhase;
    if (is === 'SomeFailed' || is === 'AllFailed') throw new Error(`the offloading has failed: ${is}`);
    return is === 'Ready' || is === 'NoClusterSelected' ? is : undefined;
  });
  const { waited } = waits;
  return phase === 'Ready' ? { waited } : { waited, warning: 'no cluster is selected' };
}

export async function unoffloadNamespace({ api }: Target, namespace: string): Promise<readonly Waited[]> {
  const waits = createWaits(unoffloadTimeoutMs, pollMs);
  await api.delete(namespaceOffloadings, { namespace, name });
  await waits.until(
    'offloading gone',
    async () => (await api.get(namespaceOffloadings, { namespace, name })) === undefined,
  );
  return waits.waited;
}
