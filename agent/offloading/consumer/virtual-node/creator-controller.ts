/** Consumer: an accepted slice that asks for it becomes a VirtualNode; the node goes before the slice does. */
import { consumerRefusal } from '#agent/model/policies.ts';
import { conditionOf, isOriginal, providerOf, wantsVirtualNode } from '#agent/model/slice-roles.ts';
import type { PeeringDeps } from '#agent/peering/model/deps.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Applied, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { ownerName } from '#kube/writes/owner-references.ts';
import { applyWanted, deleteObject } from '#kube/writes/write-if-changed.ts';
import { type KubeObject, keyOf, type ObjectRef, refOfKey } from '#shared/domain/kube-object.ts';
import { name } from '#shared/domain/liqo-keys.ts';
import { type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type VirtualNode, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { believedLabels } from './believed-labels.ts';
import { buildVirtualNode } from './object.ts';

const sliceKeys = (child: KubeObject): string[] => {
  const owner = ownerName(resourceSlices, child);
  return owner === undefined ? [] : [`${child.metadata.namespace}/${owner}`];
};

const longMs = 60_000;

/** What stands between a slice and its virtual node; undefined: nothing. Pure. */
function obstacle(slice: ResourceSlice, provider: string): Outcome | undefined {
  for (const type of ['Authentication', 'Resources'] as const) {
    const condition = conditionOf(slice, type);
    if (condition === undefined) return waiting(`provider ${provider} to answer (condition ${type})`, longMs);
    if (condition.status !== 'Accepted') {
      return stalled(
        `${type}Denied`,
        `provider ${provider} denied ${type}: ${condition.message ?? condition.reason ?? 'no reason given'}`,
      );
    }
  }
  return undefined;
}

/** Where an entry that is no longer granted must disappear. */
const grantedParts = ({ spec }: Applied<VirtualNode>): unknown => [spec?.resourceQuota, spec?.labels];

export function createVirtualNodeCreatorController({ cluster, clock, log }: PeeringDeps): Controller {
  const { api, caches, events } = cluster;
  const cache = caches.cache(resourceSlices);
  const identityCache = caches.cache(identities);
  const nodeCache = caches.cache(virtualNodes);
  const policies = caches.cache(peeringPolicies);
  const reportWait = createReportWait(events, clock);

  async function remove(slice: ObjectRef, signal: AbortSignal): Promise<void> {
    const node = nodeCache.get(slice);
    if (node === undefined || ownerName(resourceSlices, node) !== slice.name) return;
    if (node.metadata.deletionTimestamp === undefined) await deleteObject(api, virtualNodes, node, signal);
  }

  async function ensure(slice: ResourceSlice, provider: string, signal: AbortSignal): Promise<Outcome> {
    const refusal = consumerRefusal(policies.list(), provider);
    if (refusal !== undefined) return stalled('PolicyRefused', refusal);
    // A VirtualNode that is there stays, also of a slice that is drained: remote namespaces and the volumes in them would go with it.
    const inTheWay = obstacle(slice, provider);
    if (inTheWay !== undefined) return inTheWay;
    const { namespace = '' } = slice.metadata;
    const identity = identityCache.get({ namespace, name: name.sliceIdentity(slice.metadata.name) });
    const secret = identity?.status?.kubeconfigSecretRef?.name;
    if (secret === undefined) return waiting('the kubeconfig Secret of its Identity', 30_000);
    const current = nodeCache.get({ namespace, name: slice.metadata.name });
    if (current?.metadata.deletionTimestamp !== undefined)
      return waiting('the previous VirtualNode of this name to go', 30_000);
    const elsewhere = nodeCache
      .list()
      .find((node) => node.metadata.name === slice.metadata.name && node.metadata.namespace !== namespace);
    if (elsewhere !== undefined) {
      return stalled(
        'NodeNameTaken',
        `VirtualNode ${keyOf(elsewhere)} already makes a Node named ${slice.metadata.name}; give the slice another name`,
      );
    }
    const { labels, leftOut } = believedLabels(slice.status?.nodeLabels ?? {}, policies.list(), provider);
    const applied = await applyWanted(
      api,
      virtualNodes,
      current,
      buildVirtualNode(slice, provider, secret, labels),
      grantedParts,
      signal,
    );
    if (applied && current === undefined)
      events.emit(slice, 'Normal', 'VirtualNodeCreated', `VirtualNode ${slice.metadata.name} created`);
    if (applied && leftOut.length > 0)
      events.emit(
        slice,
        'Normal',
        'LabelsNotBelieved',
        `Node ${slice.metadata.name} does not bear ${leftOut.join(', ')}, which provider ${provider} claims: list what you believe in spec.asConsumer.nodeLabels of a PeeringPolicy for it`,
      );
    return settled;
  }

  return createController(
    {
      name: 'virtual-node-creator',
      watches: [
        watch(cache, (slice) => (isOriginal(slice) ? [keyOf(slice)] : [])),
        watch(identityCache, sliceKeys),
        watch(nodeCache, sliceKeys),
        watch(policies, () => cache.list().filter(isOriginal).map(keyOf)),
      ],
      async reconcile(key, signal) {
        const ref = refOfKey(key);
        const slice = cache.get(ref);
        if (slice === undefined) {
          if ((await api.get(resourceSlices, ref, signal)) === undefined) await remove(ref, signal);
          return settled;
        }
        const provider = providerOf(slice);
        if (!isOriginal(slice) || provider === undefined) return settled;
        if (slice.metadata.deletionTimestamp !== undefined) {
          await remove(ref, signal);
          return settled;
        }
        return wantsVirtualNode(slice) ? reportWait(slice, await ensure(slice, provider, signal)) : settled;
      },
    },
    { clock, log },
  );
}
