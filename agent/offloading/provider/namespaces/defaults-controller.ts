/** Provider: the LimitRange, NetworkPolicy and ResourceQuota in every namespace of a consumer, and its level of pod security. */
import { rangeNodes } from '#agent/model/network-selections.ts';
import type { Applied, Cache, Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { applyWanted, deleteObject } from '#kube/writes/write-if-changed.ts';
import { namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, Node, ResourceType } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, stalled } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { createRulebook } from '../guests/rulebook.ts';
import { mappedFor } from '../model/guest-namespace.ts';
import { type Default, defaultsFor, levelFor } from './defaults.ts';
import { isolationOf } from './isolation.ts';
import { podSecurityLabel } from './objects.ts';

type Loose = KubeObject & { spec?: Record<string, unknown> };

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

/** What a comparison by what is wanted would not miss: limits of a quota, and exceptions from a range. */
const droppable = (spec: Record<string, unknown> = {}): readonly string[] => [
  ...Object.keys((spec.hard ?? {}) as object).sort(),
  ...[...JSON.stringify(spec).matchAll(/"except":\[[^\]]*\]/g)].map(([text]) => text),
];

export function createNamespaceDefaultsController(deps: ControllerDeps & { readonly cluster: Cluster }): Controller {
  const { api, caches, events } = deps.cluster;
  const all = caches.cache(namespaces);
  const rulebook = createRulebook(caches);
  const configurations = caches.cache(networkKinds.configurations);
  const networks = caches.cache(networkKinds.networks);
  const nodes = rangeNodes(caches);
  const ours = { labelSelector: `${label.managed}=true` };
  const existing: Readonly<Record<Default, Cache<Loose>>> = {
    limitRange: caches.cache(kinds.limitRange, ours),
    networkPolicy: caches.cache(kinds.networkPolicy, ours),
    resourceQuota: caches.cache(kinds.resourceQuota, ours),
  };
  const guests = (): string[] =>
    all.list().flatMap((namespace) => (mappedFor(namespace) === undefined ? [] : [namespace.metadata.name]));
  const given = new Map<string, string>();
  /** Nodes change with each heartbeat, the ranges of their pods hardly ever. */
  const givesOther = ({ metadata, spec }: Node): boolean => {
    const ranges = String(spec?.podCIDRs ?? spec?.podCIDR ?? '');
    const isOther = given.get(metadata.name) !== ranges;
    given.set(metadata.name, ranges);
    return isOther;
  };
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
      await applyWanted(api, type, current, wanted, ({ spec: one }) => droppable(one), signal);
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
        watch(all, (namespace) => (mappedFor(namespace) === undefined ? [] : [namespace.metadata.name])),
        watch(rulebook.policies, guests),
        watch(configurations, guests),
        watch(networks, guests),
        watch(nodes, (node) => (givesOther(node) ? guests() : [])),
        ...defaults.map((what) => watch(existing[what], own)),
      ],
      async reconcile(key, signal) {
        const namespace = all.get({ name: key });
        const consumer = mappedFor(namespace);
        if (!namespace || consumer === undefined || namespace.metadata.deletionTimestamp !== undefined) return settled;
        const rules = rulebook.rulesOf(consumer);
        const level = levelFor(namespace.metadata.labels?.[podSecurityLabel], rules);
        if (level !== undefined) {
          const labelled = { metadata: { uid: namespace.metadata.uid, labels: { [podSecurityLabel]: level } } };
          await api.mergePatch(namespaces, { name: key }, labelled, {}, signal);
        }
        const wanted = defaultsFor(rulebook.policies.list(), consumer, rules, () =>
          isolationOf({
            consumer,
            rules,
            configurations: configurations.list(),
            networks: networks.list(),
            nodes: nodes.list(),
          }),
        );
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
