/** VirtualNodes: each gets a virtual kubelet in this process, a NamespaceMap for its provider, and an orderly end. */
import { virtualNodeNodes } from '#agent/model/peering-selections.ts';
import { optionsTemplateRef, withOptions } from '#agent/model/vk-options.ts';
import { sharedReflection } from '#agent/reflection/shared-reflection.ts';
import type { Controller, WriteOptions } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { timestamp } from '#kube/writes/conditions.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import { keyOf, type Node, type Pod, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { annotation, finalizer } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type VirtualNode, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { vkOptionsTemplates } from '#shared/schema/liqo/vk-options-template.ts';
import { NodeAccess } from '../kubelet-api/caller.ts';
import { forgetRequest } from '../kubelet-api/serving-certificate.ts';
import { ensureNamespaceMap, releaseNamespaceMap } from '../namespaces/namespace-map.ts';
import { perform } from '../node-removal/perform.ts';
import { type RetireLimits, retire } from '../node-removal/plan.ts';
import {
  type ConditionInput,
  kubeletCondition,
  mergedConditions,
  nodeCondition,
  retiringConditions,
} from './conditions.ts';
import { isOurs } from './node-object.ts';
import { isDrained, sliceOf } from './slice-state.ts';
import { type KubeletChange, VirtualKubelet, type VirtualKubeletDeps } from './virtual-kubelet.ts';

export interface VirtualNodeDeps extends Omit<VirtualKubeletDeps, 'access' | 'nodes' | 'reflection'> {
  readonly systemNamespace: string;
  /** Resync period of reflection; default 5 minutes. */
  readonly reflectionResyncMs?: number;
  /** Of a drain; default 2 and 3 minutes. */
  readonly limits?: RetireLimits;
}

interface Running {
  readonly kubelet: VirtualKubelet;
  readonly blocked: Map<string, string>;
  /** Pods matter to the VirtualNode only while it is being emptied. */
  retiring: boolean;
  retiringSinceMs: number | undefined;
}

/** The cache may still show a VirtualNode that is gone: then there is no status to write. */
class VirtualNodeGone extends Error {}

const defaultLimits: RetireLimits = { budgetsMs: 120_000, forceMs: 180_000 };

export function createVirtualNodeController(deps: VirtualNodeDeps): Controller {
  const { cluster, clock, limits = defaultLimits } = deps;
  const { api, caches, events } = cluster;
  const all = caches.cache(virtualNodes);
  const maps = caches.cache(namespaceMaps);
  const templates = caches.cache(vkOptionsTemplates);
  const peers = caches.cache(foreignClusters);
  const slices = caches.cache(resourceSlices);
  const nodeCache = virtualNodeNodes(caches);
  const access = new NodeAccess({ api, clock });
  const running = new Map<string, Running>();
  const reflection = sharedReflection({
    cluster,
    systemNamespace: deps.systemNamespace,
    nodes: nodeCache,
    pod: offloadedPod,
    resyncMs: deps.reflectionResyncMs,
  });
  /** Ends of VirtualNodes happen one after the other: each sees whether it is the last of its provider. */
  let finishing: Promise<void> = Promise.resolve();

  const keysWhere = (matches: (virtualNode: VirtualNode) => boolean): string[] => all.list().filter(matches).map(keyOf);
  const controller = createController(
    {
      name: 'virtual-node',
      watches: [
        watch(all, (virtualNode) => [keyOf(virtualNode)]),
        watch(maps, ({ metadata }) => keysWhere((vn) => vn.metadata.namespace === metadata.namespace)),
        watch(templates, ({ metadata }) =>
          keysWhere((vn) => {
            const { namespace, name } = optionsTemplateRef(vn, deps.systemNamespace);
            return namespace === metadata.namespace && name === metadata.name;
          }),
        ),
        watch(slices, (slice) =>
          keysWhere((vn) => {
            const ref = sliceOf(vn);
            return ref !== undefined && keyOf(slice) === `${ref.namespace}/${ref.name}`;
          }),
        ),
        watch(peers, ({ spec }) => keysWhere((vn) => vn.spec.clusterID === spec.clusterID)),
        watch(nodeCache, ({ metadata }) => keysWhere((vn) => vn.metadata.name === metadata.name)),
      ],
      workers: 4,
      reconcile,
    },
    deps,
  );

  function offloadedPod(provider: string, namespace: string, name: string): Pod | undefined {
    for (const [key, { kubelet }] of running) {
      if (all.get(refOfKey(key))?.spec.clusterID !== provider) continue;
      const pod = kubelet.localPods.get({ namespace, name });
      if (pod) return pod;
    }
    return undefined;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    try {
      return await look(key, signal);
    } catch (error) {
      if (!(error instanceof VirtualNodeGone)) throw error;
      await stop(key);
      return settled;
    }
  }

  async function look(key: string, signal: AbortSignal): Promise<Outcome> {
    const plain = all.get(refOfKey(key));
    const virtualNode = plain && withOptions(plain, templates.get(optionsTemplateRef(plain, deps.systemNamespace)));
    if (!virtualNode) {
      await stop(key);
      return settled;
    }
    const { deletionTimestamp, finalizers = [] } = virtualNode.metadata;
    if (deletionTimestamp !== undefined) {
      if (finalizers.includes(finalizer.virtualNode)) return end(key, virtualNode, signal);
      await stop(key);
      return settled;
    }
    if (!finalizers.includes(finalizer.virtualNode)) {
      const { resourceVersion } = virtualNode.metadata;
      const patch = { metadata: { resourceVersion, finalizers: [...finalizers, finalizer.virtualNode] } };
      await patchOwn(virtualNode, patch, {}, signal);
    }
    return keep(key, virtualNode, signal);
  }

  async function keep(key: string, virtualNode: VirtualNode, signal: AbortSignal): Promise<Outcome> {
    const unwanted = whyNoNode(virtualNode);
    const [entry, hasMap] = await Promise.all([
      start(key, virtualNode, unwanted === undefined),
      ensureNamespaceMap(virtualNode, maps, api, signal),
    ]);
    entry.kubelet.update(virtualNode);
    if (unwanted !== undefined) return withoutNode(key, entry, virtualNode, unwanted, signal);
    entry.retiring = false;
    entry.retiringSinceMs = undefined;
    entry.kubelet.wantNode();
    const state = entry.kubelet.state();
    await write(virtualNode, [kubeletCondition(virtualNode, state), nodeCondition(virtualNode, state)], signal);
    return hasMap ? settled : waiting('the old NamespaceMap to go', 5_000);
  }

  /** Everything else of the VirtualNode stays meanwhile: the remote namespaces, and the volumes in them. */
  function whyNoNode(virtualNode: VirtualNode): Pick<ConditionInput, 'reason' | 'message'> | undefined {
    if (virtualNode.spec.createNode === false) return { reason: 'NotWanted', message: 'spec.createNode is false' };
    const ref = sliceOf(virtualNode);
    if (ref === undefined || !isDrained(slices.get(ref))) return undefined;
    return { reason: 'Drained', message: `the provider drains slice ${ref.name}; the Node comes back when that ends` };
  }

  async function start(key: string, virtualNode: VirtualNode, withNode: boolean): Promise<Running> {
    const known = running.get(key);
    if (known) return known;
    const kubelet = new VirtualKubelet({ ...deps, access, nodes: nodeCache, reflection }, virtualNode, (what) =>
      changed(key, what),
    );
    const entry: Running = { kubelet, blocked: new Map(), retiring: false, retiringSinceMs: undefined };
    if (!withNode) kubelet.releaseNode();
    running.set(key, entry);
    try {
      await kubelet.start();
    } catch (error) {
      await stop(key);
      throw error;
    }
    return entry;
  }

  function changed(key: string, what: KubeletChange): void {
    if (what === 'state' || running.get(key)?.retiring) controller.enqueue(key);
  }

  async function stop(key: string): Promise<void> {
    const entry = running.get(key);
    running.delete(key);
    await entry?.kubelet.stop();
  }

  async function patchOwn(
    virtualNode: VirtualNode,
    patch: unknown,
    options: WriteOptions,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await api.mergePatch(virtualNodes, refOf(virtualNode), patch, options, signal);
    } catch (error) {
      throw codeOf(error) === 'kube_not_found' ? new VirtualNodeGone() : error;
    }
  }

  async function write(
    virtualNode: VirtualNode,
    inputs: readonly ConditionInput[],
    signal: AbortSignal,
  ): Promise<void> {
    const conditions = mergedConditions(virtualNode, inputs, timestamp(clock.now()));
    if (!conditions) return;
    await patchOwn(virtualNode, { status: { conditions } }, { subresource: 'status' }, signal);
  }

  /** The next steps of emptying; true when there is nothing left to do. */
  async function empty(entry: Running, virtualNode: VirtualNode, signal: AbortSignal): Promise<boolean | number> {
    const { kubelet, blocked } = entry;
    entry.retiring = true;
    kubelet.releaseNode();
    await kubelet.informed(signal);
    const node = await ownNode(virtualNode, signal);
    const { deletionTimestamp } = virtualNode.metadata;
    entry.retiringSinceMs ??= deletionTimestamp === undefined ? clock.now() : Date.parse(deletionTimestamp);
    const state = kubelet.state();
    const observed = {
      node,
      pods: kubelet.localPods.list(),
      left: kubelet.left(),
      final: deletionTimestamp !== undefined,
      abandoned: isDead(virtualNode) || (!state.connected && !state.hasIdentity),
      ageMs: clock.now() - entry.retiringSinceMs,
      blocked,
    };
    const plan = retire(observed, limits);
    if (plan.actions.some((action) => action.do === 'cordon')) {
      await api.mergePatch(nodes, { name: virtualNode.metadata.name }, { spec: { unschedulable: true } }, {}, signal);
    }
    if (!plan.done) await write(virtualNode, retiringConditions(plan, virtualNode), signal);
    const before = blocked.size;
    await perform(plan.actions, blocked, api, signal);
    // What blocks is known only now: say it at once.
    if (blocked.size > before) return 0;
    return plan.done || plan.againMs;
  }

  const isDead = ({ spec }: VirtualNode): boolean =>
    peers
      .list()
      .some(
        (peer) =>
          peer.spec.clusterID === spec.clusterID &&
          peer.metadata.annotations?.[annotation.permanentlyUnreachable] === 'true',
      );

  /** Read from the API: a Node that our own keeper made a moment ago must not be missed. */
  async function ownNode(virtualNode: VirtualNode, signal: AbortSignal): Promise<Node | undefined> {
    const node = await api.get(nodes, { name: virtualNode.metadata.name }, signal);
    return node && isOurs(node, virtualNode) ? node : undefined;
  }

  async function withoutNode(
    key: string,
    entry: Running,
    virtualNode: VirtualNode,
    why: Pick<ConditionInput, 'reason' | 'message'>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const progress = await empty(entry, virtualNode, signal);
    if (progress !== true) return again(Math.max(1, Number(progress)));
    entry.retiring = false;
    const none = { type: 'Node', status: 'None', ...why } as const;
    await write(virtualNode, [kubeletCondition(virtualNode, entry.kubelet.state()), none], signal);
    deps.log.debug('virtual node without a Node', { key });
    return settled;
  }

  async function end(key: string, virtualNode: VirtualNode, signal: AbortSignal): Promise<Outcome> {
    const entry = await start(key, virtualNode, false);
    const progress = await empty(entry, virtualNode, signal);
    if (progress !== true) return again(Math.max(1, Number(progress)));
    await stop(key);
    const finish = finishing.then(() => finalize(virtualNode, signal));
    finishing = finish.catch(() => undefined);
    await finish;
    events.emit(virtualNode, 'Normal', 'VkDeleted', 'the virtual node was drained and removed');
    return settled;
  }

  async function finalize(virtualNode: VirtualNode, signal: AbortSignal): Promise<void> {
    await releaseNamespaceMap(virtualNode, api, signal);
    await forgetRequest(virtualNode.metadata.name, api, signal);
    const now = await api.get(virtualNodes, refOf(virtualNode), signal);
    if (now?.metadata.uid !== virtualNode.metadata.uid || !now?.metadata.finalizers) return;
    const finalizers = now.metadata.finalizers.filter((name) => name !== finalizer.virtualNode);
    const patch = { metadata: { resourceVersion: now.metadata.resourceVersion, finalizers } };
    await patchOwn(now, patch, {}, signal);
  }

  return {
    name: controller.name,
    enqueue: (key) => controller.enqueue(key),
    measure: (metrics) => controller.measure(metrics),
    async run(signal) {
      try {
        await controller.run(signal);
      } finally {
        await Promise.allSettled([...running.keys()].map(stop));
      }
    },
  };
}
