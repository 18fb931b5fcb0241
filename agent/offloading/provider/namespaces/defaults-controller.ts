/** Provider: the LimitRange, NetworkPolicy and ResourceQuota that a PeeringPolicy wants in every namespace of a consumer. */
import { termsFor } from '#agent/peering/slices/grant.ts';
import type { Applied, Cache, Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { applyWanted, deleteObject } from '#kube/writes/write-if-changed.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, ResourceType } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, stalled } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';

type Loose = KubeObject & { spec?: Record<string, unknown> };
type Default = 'limitRange' | 'networkPolicy' | 'resourceQuota';

const kinds: Readonly<Record<Default, ResourceType<Loose>>> = {
  limitRange: { group: '', version: 'v1', kind: 'LimitRange', plural: 'limitranges', namespaced: true },
  networkPolicy: {
    group: 'networking.k8s.io',
    version: 'v1',
    kind: 'NetworkPolicy',
    plural: 'networkpolicies',
    namespaced: true,
  },
  resourceQuota: { group: '', version: 'v1', kind: 'ResourceQuota', plural: 'resourcequotas', namespaced: true },
};
const defaults = Object.keys(kinds) as readonly Default[];
const defaultsName = 'isthmus-default';

const consumerOf = ({ metadata }: Namespace): string | undefined =>
  metadata.annotations?.[annotation.managedByNamespaceMap] === undefined
    ? undefined
    : metadata.labels?.[label.remoteClusterId];

/** Of several policies about this consumer the first by name that has one. Pure. */
function defaultsFor(
  policies: readonly PeeringPolicy[],
  consumer: string,
): Partial<Record<Default, Record<string, unknown>>> {
  const terms = termsFor(policies, consumer).map(([, { namespaceDefaults }]) => namespaceDefaults);
  return Object.fromEntries(
    defaults.flatMap((what) => {
      const spec = terms.find((one) => one?.[what])?.[what];
      return spec === undefined ? [] : [[what, spec]];
    }),
  );
}

export function createNamespaceDefaultsController(deps: ControllerDeps & { readonly cluster: Cluster }): Controller {
  const { api, caches, events } = deps.cluster;
  const all = caches.cache(namespaces);
  const policies = caches.cache(peeringPolicies);
  const ours = { labelSelector: `${label.managed}=true` };
  const existing: Readonly<Record<Default, Cache<Loose>>> = {
    limitRange: caches.cache(kinds.limitRange, ours),
    networkPolicy: caches.cache(kinds.networkPolicy, ours),
    resourceQuota: caches.cache(kinds.resourceQuota, ours),
  };
  const guests = (): string[] =>
    all.list().flatMap((namespace) => (consumerOf(namespace) === undefined ? [] : [namespace.metadata.name]));
  const own = ({ metadata }: Loose): string[] => (metadata.name === defaultsName ? [metadata.namespace ?? ''] : []);

  async function ensure(
    what: Default,
    namespace: Namespace,
    spec: Record<string, unknown> | undefined,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const ref = { namespace: namespace.metadata.name, name: defaultsName };
    const type = kinds[what];
    const current = existing[what].get(ref);
    if (spec === undefined) {
      if (current !== undefined) await deleteObject(api, type, current, signal);
      return settled;
    }
    const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`;
    const metadata = { ...ref, labels: { [label.managed]: 'true' } };
    const wanted: Applied<Loose> = { apiVersion, kind: type.kind, metadata, spec };
    try {
      await applyWanted(api, type, current, wanted, () => undefined, signal);
      return settled;
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'kube_invalid' && code !== 'kube_forbidden') throw error;
      const message = `the ${type.kind} of a PeeringPolicy (asProvider.namespaceDefaults.${what}) is not accepted: ${(error as Error).message}`;
      events.emit(namespace, 'Warning', 'InvalidNamespaceDefault', message);
      return stalled('InvalidNamespaceDefault', message);
    }
  }

  return createController(
    {
      name: 'namespace-defaults',
      watches: [
        watch(all, (namespace) => (consumerOf(namespace) === undefined ? [] : [namespace.metadata.name])),
        watch(policies, guests),
        ...defaults.map((what) => watch(existing[what], own)),
      ],
      async reconcile(key, signal) {
        const namespace = all.get({ name: key });
        const consumer = namespace && consumerOf(namespace);
        if (!namespace || consumer === undefined || namespace.metadata.deletionTimestamp !== undefined) return settled;
        const wanted = defaultsFor(policies.list(), consumer);
        let outcome = settled;
        for (const what of defaults) {
          const one = await ensure(what, namespace, wanted[what], signal);
          if (outcome === settled) outcome = one;
        }
        return outcome;
      },
    },
    deps,
  );
}
