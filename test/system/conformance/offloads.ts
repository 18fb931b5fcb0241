/** Plays the administrator of the suite's cluster: every namespace that the suite makes is offloaded before its first pod. */
import type { KubeApi } from '#kube/model/types.ts';
import { namespaces, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Namespace } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { type NamespaceOffloading, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import type { Share } from './suite.ts';

/** On every namespace that the suite makes. */
const suiteLabel = 'e2e-run';
const everyMs = 200;
/** The namespace was deleted meanwhile, or the last turn made the object. */
const outdated: ReadonlySet<string | undefined> = new Set(['kube_already_exists', 'kube_not_found', 'kube_forbidden']);

async function make(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error: unknown) => {
    if (!outdated.has(codeOf(error))) throw error;
  });
}

type Strategy = Pick<NamespaceOffloading['spec'], 'podOffloadingStrategy' | 'namespaceMappingStrategy'>;

/**
 * Where all pods are at the provider, the namespace there has the name that is the default. Where half are, specs ask for names of Services with the name
 * of the namespace in them, so that is one name in both clusters (docs/offloading.md).
 */
const strategyOf = {
  all: { podOffloadingStrategy: 'Remote', namespaceMappingStrategy: 'DefaultName' },
  half: { podOffloadingStrategy: 'LocalAndRemote', namespaceMappingStrategy: 'EnforceSameName' },
} as const satisfies Record<Share, Strategy>;

const offloadingIn = (namespace: string, virtual: Share): NamespaceOffloading =>
  ({
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: { namespace, name: 'offloading' },
    spec: strategyOf[virtual],
  }) as NamespaceOffloading;

async function prepare(
  api: KubeApi,
  virtual: Share,
  { metadata: { name: namespace, labels } }: Namespace,
): Promise<void> {
  if (labels?.[suiteLabel] !== undefined) {
    const found = await api.get(namespaceOffloadings, { namespace, name: 'offloading' });
    if (found === undefined) await make(api.create(namespaceOffloadings, offloadingIn(namespace, virtual)));
    if (found?.status?.offloadingPhase !== 'Ready') return;
  }
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name: 'default' } };
  await make(api.create(serviceAccounts, account));
}

/**
 * The suite waits for the account `default` of a new namespace. The controller that makes it is switched off: here it is made once the namespace is
 * offloaded, and at once in namespaces that the suite did not make. Resolves with how to stop.
 */
export function offloadSuiteNamespaces(api: KubeApi, virtual: Share, say: (line: string) => void): () => Promise<void> {
  const stop = new AbortController();
  const turn = async (): Promise<void> => {
    const [all, accounts] = [await api.list(namespaces), await api.list(serviceAccounts)];
    const prepared = new Set(
      accounts.flatMap(({ metadata }) => (metadata.name === 'default' ? metadata.namespace : [])),
    );
    const open = all.filter(({ metadata }) => !metadata.deletionTimestamp && !prepared.has(metadata.name));
    await Promise.all(open.map((namespace) => prepare(api, virtual, namespace)));
  };
  const running = (async () => {
    while (!stop.signal.aborted) {
      await turn().catch((error: unknown) => say(`namespaces of the suite: ${(error as Error).message}`));
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  })();
  return async () => {
    stop.abort();
    await running;
  };
}
