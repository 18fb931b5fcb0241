/** Keeps the Node of one virtual node and its Lease as long as the provider answers; silence is left to the cluster's own node lifecycle. */
import { OwnWrites } from '#kube/cache/own-writes.ts';
import type { Cache, Controller, KubeApi } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { microTime } from '#kube/run/event-recorder.ts';
import { timestamp } from '#kube/writes/conditions.ts';
import { leases, nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { isOurs, type NodeInput, newNode, nodePatch, nodeStatus, nodeStatusPatch } from './node-object.ts';

export interface NodeKeeperDeps {
  readonly api: KubeApi;
  /** Every virtual Node of this cluster. */
  readonly nodes: Cache<Node>;
  readonly name: string;
  /** What the Node must be now; undefined while the provider does not answer or no Node is wanted: then nothing is written. */
  readonly input: () => NodeInput | undefined;
  /** Called with true when the Node of our name has another owner, and with false once it has not. */
  readonly onTaken: (taken: boolean) => void;
  readonly clock: Clock;
  readonly log: Log;
}

const heartbeatMs = 60_000;
const leaseSeconds = 40;
const leaseNamespace = 'kube-node-lease';

export class NodeKeeper {
  readonly #deps: NodeKeeperDeps;
  readonly #controller: Controller;
  #heartbeatAt = Number.NEGATIVE_INFINITY;
  readonly #written: OwnWrites<Node>;

  constructor(deps: NodeKeeperDeps) {
    this.#deps = deps;
    this.#written = new OwnWrites(deps);
    this.#controller = createController(
      {
        name: 'virtual-node-keeper',
        watches: [watch(deps.nodes, ({ metadata }) => (metadata.name === deps.name ? [deps.name] : []))],
        workers: 1,
        reconcile: (_, signal) => this.#reconcile(signal),
      },
      deps,
    );
  }

  /** Something that the Node depends on changed. */
  look(): void {
    this.#controller.enqueue(this.#deps.name);
  }

  run(signal: AbortSignal): Promise<void> {
    this.#written.follow(this.#deps.nodes, signal);
    this.look();
    return this.#controller.run(signal);
  }

  async #reconcile(signal: AbortSignal): Promise<Outcome> {
    const { api, clock, name, onTaken } = this.#deps;
    const input = this.#deps.input();
    if (!input) return settled;
    const now = timestamp(clock.now());
    let node = this.#known();
    if (!node) {
      try {
        node = await api.create(nodes, newNode(input, now), {}, signal);
        this.#heartbeatAt = clock.now();
      } catch (error) {
        if (codeOf(error) !== 'kube_already_exists') throw error;
        node = await api.get(nodes, { name }, signal);
        if (!node) return again(50);
      }
      if (isOurs(node, input.virtualNode)) {
        this.#written.wrote(node);
        await this.renewLease(signal);
      }
    }
    const taken = !isOurs(node, input.virtualNode);
    onTaken(taken);
    if (taken) return waiting(`the Node ${name}, which was not made for this VirtualNode, to be removed`, 30_000);
    if (node.metadata.deletionTimestamp !== undefined) return settled;
    await this.#update(node, input, now, signal);
    return again(Math.max(1_000, this.#heartbeatAt + heartbeatMs - clock.now()));
  }

  #known(): Node | undefined {
    return this.#written.get(this.#deps.nodes, { name: this.#deps.name });
  }

  async #update(node: Node, input: NodeInput, now: string, signal: AbortSignal): Promise<void> {
    const { api, clock, name } = this.#deps;
    const patch = nodePatch(node, input.virtualNode, input.provider);
    if (patch) this.#written.wrote(await api.mergePatch(nodes, { name }, patch, {}, signal));
    const due = clock.now() - this.#heartbeatAt >= heartbeatMs;
    const status = nodeStatusPatch(node.status, nodeStatus(input, node.status, now), due);
    if (!status) return;
    this.#written.wrote(await api.mergePatch(nodes, { name }, { status }, { subresource: 'status' }, signal));
    if ('conditions' in status) this.#heartbeatAt = clock.now();
  }

  /** Without a Node there is nothing to renew. */
  async renewLease(signal: AbortSignal): Promise<void> {
    const { api, clock, name, log } = this.#deps;
    const node = this.#known();
    const input = this.#deps.input();
    if (!node || !input || !isOurs(node, input.virtualNode)) return;
    const spec = { holderIdentity: name, leaseDurationSeconds: leaseSeconds, renewTime: microTime(clock.now()) };
    const ref = { namespace: leaseNamespace, name };
    try {
      await api.mergePatch(leases, ref, { spec }, {}, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (codeOf(error) !== 'kube_not_found') {
        log.warn('the node lease was not renewed', { node: name, code: codeOf(error) });
        return;
      }
      const owner = { apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid ?? '' };
      const metadata = { ...ref, ownerReferences: [owner] };
      await api
        .create(leases, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec }, {}, signal)
        .catch((cause: unknown) => log.warn('the node lease was not made', { node: name, code: codeOf(cause) }));
    }
  }
}
