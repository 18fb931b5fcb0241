/** The hooks by path: each gathers what its pure rule needs, from the caches first and from the API server where a cache may lag. */
import { isAllowed } from '#kube/http/access-review.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import { namespaces, nodes } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { systemNamespace as defaultNamespace, label, namespaceOffloadingName } from '#shared/domain/liqo-keys.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { type NamespaceOffloading, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
import { type VirtualNode, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { type VkOptionsTemplate, vkOptionsTemplates } from '#shared/schema/liqo/vk-options-template.ts';
import type { Hook, HookDeps, Hooks } from './admission/hook.ts';
import { allow, deny, type PatchOperation, type Review, type Verdict } from './admission/review.ts';
import { asCertified, namespaceOfAccount } from './model/peer-accounts.ts';
import { consumerRefusal } from './model/policies.ts';
import { optionsTemplateRef } from './model/vk-options.ts';
import { createNetworkHooks } from './network/admission/webhooks.ts';
import {
  validateChangedOffloading,
  validateNewOffloading,
} from './offloading/consumer/admission/namespace-offloading.ts';
import { validateOptions } from './offloading/consumer/admission/options-template.ts';
import { gatePatch, podPatch, windowsProblem } from './offloading/consumer/admission/pod.ts';
import { claimsOfPod } from './offloading/consumer/admission/pod-claims.ts';
import { createClaimHooks } from './offloading/provider/admission/claim-hooks.ts';
import { createExposureHooks } from './offloading/provider/admission/exposure-hooks.ts';
import { validateReflectedKind } from './offloading/provider/admission/reflected-kind.ts';
import { createShadowPodHooks } from './offloading/provider/admission/webhooks.ts';
import { createAdmissionGate } from './offloading/provider/quota/admission-gate.ts';
import * as control from './peering/admission/authentication-kinds.ts';

const patched = (patch: readonly PatchOperation[]): Verdict => ({ allowed: true, patch });

/** For rules that read the spec: the API server has checked it against the schema, or this hook is asked about no object at all. */
const on =
  <T extends KubeObject>(
    hook: (review: Review<T> & { readonly object: T }, signal: AbortSignal) => Promise<Verdict> | Verdict,
  ): Hook =>
  (review, signal) =>
    review.object ? hook(review as Review<T> & { readonly object: T }, signal) : allow;

function mayUpdateAllTenants(api: KubeApi, user: Review['user'], signal: AbortSignal): Promise<boolean> {
  const { group, plural: resource } = tenants;
  return isAllowed(api, { user: user.name, groups: user.groups }, { verb: 'update', group, resource }, signal);
}

export function createHooks({ cluster, clusterId, clock, systemNamespace = defaultNamespace }: HookDeps): Hooks {
  const { api, caches } = cluster;
  const known = {
    namespaces: caches.cache(namespaces),
    offloadings: caches.cache(namespaceOffloadings),
    policies: caches.cache(peeringPolicies),
  };
  const copies = createAdmissionGate(clock);
  const shadowPods = createShadowPodHooks({
    cluster,
    clock,
    namespaceOf: (name, signal) => namespaceOf(api, known.namespaces, name, signal),
  });
  /** Consumers that log in by token are judged as by certificate: it is the same user. */
  const asPeer =
    (hook: Hook): Hook =>
    async (review, signal) => {
      const namespace = namespaceOfAccount(review.user);
      if (namespace === undefined) return hook(review, signal);
      const home = await namespaceOf(api, known.namespaces, namespace, signal);
      return hook({ ...review, user: asCertified(review.user, home) }, signal);
    };
  const exposure = createExposureHooks(cluster, (name, signal) => namespaceOf(api, known.namespaces, name, signal));
  const claims = createClaimHooks({
    cluster,
    clock,
    namespaceOf: (name, signal) => namespaceOf(api, known.namespaces, name, signal),
  });
  const routes = new Map<string, Hook>([
    ['/mutate/pod', on<Pod>((review, signal) => mutatePod(api, known.offloadings, review, signal))],
    ['/mutate/shadowpods', asPeer(shadowPods.mutate)],
    ['/validate/shadowpods', asPeer(shadowPods.validate)],
    [
      '/mutate/foreign-cluster',
      on<ForeignCluster>(({ object }) => patched(control.remoteClusterPatch(object, object.spec?.clusterID))),
    ],
    [
      '/mutate/tenants',
      on<Tenant>(({ object }) => patched(control.remoteClusterPatch(object, object.spec?.clusterID))),
    ],
    ['/mutate/virtualnodes', on<VirtualNode>((review, signal) => mutateVirtualNode(review, signal))],
    ['/validate/namespace-offloading', on<NamespaceOffloading>((review, signal) => validateOffloading(review, signal))],
    ['/validate/replicas', asPeer((review, signal) => validateCopy(review, signal))],
    ['/validate/resourceslices', asPeer((review, signal) => validateSlice(review as Review<ResourceSlice>, signal))],
    ['/validate/tenants', on<Tenant>((review, signal) => validateTenant(review, signal))],
    ['/validate/virtualnodes', on<VirtualNode>((review, signal) => validateVirtualNode(review, signal))],
    [
      '/validate/reflected',
      asPeer(async (review, signal) => {
        const guest = await namespaceOf(api, known.namespaces, review.namespace, signal);
        return validateReflectedKind(review, guest?.metadata.labels?.[label.remoteClusterId], known.policies.list());
      }),
    ],
    ...[...exposure.routes, ...claims.routes].map(([path, hook]): [string, Hook] => [path, asPeer(hook)]),
    ['/validate/vkoptionstemplates', on<VkOptionsTemplate>(({ object }) => validateOptions(object))],
    ...createNetworkHooks(api, systemNamespace, () => known.policies.list()),
  ]);

  async function validateOffloading(
    { object, before, namespace }: Review<NamespaceOffloading> & { object: NamespaceOffloading },
    signal: AbortSignal,
  ) {
    if (before) return validateChangedOffloading(before, object);
    const local = await namespaceOf(api, known.namespaces, namespace, signal);
    return validateNewOffloading(object, {
      namespace,
      namespaceLabels: local?.metadata.labels ?? {},
      clusterId,
      others: known.offloadings.list(),
    });
  }

  async function validateCopy(review: Review, signal: AbortSignal): Promise<Verdict> {
    if (!control.isConsumer(review)) return allow;
    const verdict = control.validateReplica(review);
    const { object, before } = review;
    const type = [namespaceMaps, renews].find(({ kind }) => kind === object?.kind) as ResourceType | undefined;
    if (!verdict.allowed || before || !object || type === undefined) return verdict;
    return admitCopy(type, { ...review, object }, signal);
  }

  /** Of copies that ask at the same instant, as of pods: what was let in counts until a list must show it. */
  function admitCopy(
    type: ResourceType,
    { object, namespace, name, uid, dryRun }: Review & { readonly object: KubeObject },
    signal: AbortSignal,
  ): Promise<Verdict> {
    const keyOfCopy = (of: string): string => `${type.plural}/${namespace}/${of}`;
    const key = keyOfCopy(name || uid);
    return copies.admit(
      { key, user: keyOfCopy(''), amounts: {}, dryRun },
      // Nothing is known without a list.
      () => deny('quota_exceeded', ''),
      async () => {
        const stored = (await api.list(type, { namespace }, signal)).map(({ metadata }) => keyOfCopy(metadata.name));
        return (reserved) => {
          const others = new Set([...stored, ...reserved.keys()]);
          others.delete(key);
          return control.validateCount(object, others.size);
        };
      },
    );
  }

  async function validateSlice(review: Review<ResourceSlice>, signal: AbortSignal): Promise<Verdict> {
    const isConsumer = control.isConsumer(review);
    const verdict = isConsumer ? control.validateReplica(review) : allow;
    const { object, before, namespace } = review;
    if (!verdict.allowed || before || !object) return verdict;
    // A copy takes no name here, and wishes for nothing from others.
    if (isConsumer) return admitCopy(resourceSlices, { ...review, object }, signal);
    const named = control.validateSlice(object, namespace, await api.list(resourceSlices, {}, signal));
    return named.allowed ? control.validateWish(object, known.policies.list()) : named;
  }

  async function validateTenant(
    { object, before, namespace, user }: Review<Tenant> & { object: Tenant },
    signal: AbortSignal,
  ) {
    // Read from the API server: the labels may have been set a moment before the Tenant was made.
    const [local, others, isAdministrator] = await Promise.all([
      api.get(namespaces, { name: namespace }, signal),
      before ? [] : api.list(tenants, {}, signal),
      control.letsIn(object, before) && mayUpdateAllTenants(api, user, signal),
    ]);
    const namespaceLabels = local?.metadata.labels ?? {};
    return control.validateTenant(object, before, { namespace, namespaceLabels, others, isAdministrator });
  }

  const optionsOf = (virtualNode: VirtualNode, signal: AbortSignal) =>
    api.get(vkOptionsTemplates, optionsTemplateRef(virtualNode, systemNamespace), signal);

  async function mutateVirtualNode(
    { object, namespace }: Review<VirtualNode> & { object: VirtualNode },
    signal: AbortSignal,
  ) {
    if (object.spec.createNode !== undefined && object.spec.disableNetworkCheck !== undefined) return allow;
    const options = await optionsOf({ ...object, metadata: { ...object.metadata, namespace } }, signal);
    return patched(control.virtualNodePatch(object, options?.spec));
  }

  async function validateVirtualNode(
    { object, namespace }: Review<VirtualNode> & { object: VirtualNode },
    signal: AbortSignal,
  ) {
    const named = object.spec.vkOptionsTemplateRef?.name;
    if (named && !(await optionsOf({ ...object, metadata: { ...object.metadata, namespace } }, signal))) {
      return deny(
        'not_found',
        `spec.vkOptionsTemplateRef names VkOptionsTemplate ${named}, which does not exist: create it first, or leave the field out`,
      );
    }
    const refusal = consumerRefusal(known.policies.list(), object.spec.clusterID);
    if (refusal !== undefined) return deny('policy_refused', refusal);
    const node = await api.get(nodes, { name: object.metadata.name }, signal);
    return control.validateNewVirtualNode(object, node, node ? await api.list(virtualNodes, {}, signal) : []);
  }

  return {
    routes,
    async synced(signal) {
      await Promise.all([
        known.namespaces.synced(signal),
        known.offloadings.synced(signal),
        known.policies.synced(signal),
        shadowPods.synced(signal),
        exposure.synced(signal),
        claims.synced(signal),
      ]);
    },
  };
}

/** A namespace made a moment ago may not be in the cache yet. */
async function namespaceOf(
  api: KubeApi,
  cache: Cache<Namespace>,
  name: string,
  signal: AbortSignal,
): Promise<Namespace | undefined> {
  return cache.get({ name }) ?? (await api.get(namespaces, { name }, signal));
}

async function mutatePod(
  api: KubeApi,
  cache: Cache<NamespaceOffloading>,
  { object, namespace }: Review<Pod> & { object: Pod },
  signal: AbortSignal,
): Promise<Verdict> {
  const ref = { namespace, name: namespaceOffloadingName };
  const offloading = cache.get(ref) ?? (await api.get(namespaceOffloadings, ref, signal));
  if (!offloading) {
    return deny(
      'namespace_not_offloaded',
      `namespace ${namespace} is labelled liqo.io/scheduling-enabled=true, but NamespaceOffloading ${namespace}/${namespaceOffloadingName} does not exist (yet): create it, or remove the label`,
    );
  }
  if (offloading.metadata.deletionTimestamp) return allow;
  const { refusal, warning } = windowsProblem(object, offloading.spec);
  if (refusal !== undefined) return deny('invalid_input', refusal);
  const claims = await claimsOfPod(object, namespace, api, signal);
  const patch = [...podPatch(object, offloading.spec, claims), ...gatePatch(object, offloading, claims)];
  return warning === undefined ? patched(patch) : { allowed: true, patch, warnings: [warning] };
}
