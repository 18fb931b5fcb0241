/**
 * A cluster that only remembers: its agent applies desired sets and reports, its controllers do what the real ones do to the objects of a
 * peering, and the consumer reaches the provider directly. Removal obeys the real rule: a consumer waits for the provider's API server
 * unless told that the peer is dead.
 */
import type {
  ClusterFacts,
  DesiredSet,
  ObservedObject,
  ObservedSet,
  PeeringAsk,
} from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringSamples } from '#shared/schema/protocol/samples.ts';
import type { AgentCaller } from '../access/caller.ts';
import type { Control } from '../control.ts';
import { isOfLink, SimulatedLinks } from './simulated-link.ts';

type Data = Record<string, unknown>;
interface Thing {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  data: Data;
}

export const openFacts: ClusterFacts = {
  agentVersion: '0.1.0',
  protocolVersion: 1,
  capabilities: [],
  kubernetesVersion: 'v1.34.0',
  apiServerUrl: 'https://192.0.2.1:6443',
  apiServerCa: '',
  podCidrs: [],
  serviceCidrs: [],
  nodes: 1,
  allocatable: { cpu: '4', memory: '8Gi' },
  policies: [
    {
      name: 'default',
      asConsumer: { enabled: true, autoAccept: true, peers: ['*'] },
      asProvider: {
        enabled: true,
        autoAccept: true,
        peers: ['*'],
        maxResourcesPerPeer: { cpu: '8' },
        classes: ['default'],
      },
    },
  ],
};

export class SimulatedCluster {
  readonly id: string;
  readonly #control: () => Control;
  readonly #agent: AgentCaller;
  readonly #things = new Map<string, Map<string, Thing>>();
  readonly #sets = new Map<string, DesiredSet>();
  readonly #applied = new Map<string, number>();
  readonly #reported = new Map<string, string>();
  #revision = 0;
  #factsTold = '';
  #asksTold = '';
  facts: ClusterFacts = openFacts;
  asks: PeeringAsk[] = [];
  /** What was measured of peerings; goes along with the next report. */
  samples: PeeringSamples[] = [];
  /** The agent runs. */
  alive = true;
  /** The API server answers: without it the agent can neither apply nor see, but may still talk to the broker. */
  apiUp = true;
  nodeReady = true;
  /** What this cluster certifies its consumers with; base64. */
  certificate = 'Y3J0';
  readonly links: SimulatedLinks;
  refuses: string | undefined;
  /** A user of this cluster deletes the objects that carry the peerings, without asking the broker. */
  endsByHand = false;

  constructor(id: string, tenant: string, control: () => Control) {
    this.id = id;
    this.links = new SimulatedLinks(id);
    this.#control = control;
    this.#agent = { tenant, clusterId: id, principal: `cluster/${id}`, from: '192.0.2.7', requestId: 'rq' };
  }

  /** Everything of every peering, for a look at what is left. */
  get remains(): readonly string[] {
    return [...this.#things.values()].flatMap((things) => [...things.keys()]);
  }

  /** Peerings that still have objects here. */
  get peerings(): readonly string[] {
    return [...this.#things].filter(([, things]) => things.size > 0).map(([peering]) => peering);
  }

  has(peering: string, kind: string): boolean {
    return [...(this.#things.get(peering)?.values() ?? [])].some((thing) => thing.kind === kind);
  }

  answers: Awaited<ReturnType<Control['exchange']['desired']>>['answers'] = [];

  /** The process was killed: memory is lost, objects stay. */
  restart(): void {
    this.#sets.clear();
    this.#applied.clear();
    this.#reported.clear();
    this.#revision = 0;
    this.#factsTold = '';
    this.#asksTold = '';
  }

  /** Something changes in the slice or the Tenant of every peering that the broker is told of and need not act on. */
  touch(count: number): void {
    for (const things of this.#things.values())
      for (const thing of things.values())
        if (thing.kind === 'ResourceSlice' || thing.kind === 'Tenant') thing.data = { ...thing.data, touched: count };
  }

  async pull(): Promise<void> {
    if (!this.alive) return;
    const answer = await this.#control().exchange.desired(this.#agent, this.#revision);
    if (answer.full) this.#sets.clear();
    this.#revision = answer.revision;
    for (const set of answer.sets) this.#sets.set(set.peering, set);
    this.answers = answer.answers;
  }

  /** One pass of agent and controllers over everything; `peerOf` finds other clusters, which are reached directly. */
  work(peerOf: (id: string, tenant?: string) => SimulatedCluster | undefined): void {
    if (!this.apiUp || !this.alive) return;
    for (const set of this.#sets.values()) {
      const done = set.state === 'present' ? this.#apply(set) : this.#remove(set, peerOf(set.peer, set.peerTenant));
      if (done) this.#applied.set(set.peering, set.revision);
    }
    for (const set of this.#sets.values())
      if (set.state === 'present') this.#reconcile(set, peerOf(set.peer, set.peerTenant));
    this.links.apply(this.#sets.values());
    this.links.reconcile((peer) => peerOf(peer)?.links);
  }

  async report(): Promise<void> {
    if (!this.alive) return;
    await this.#control().clusters.heard(this.#agent);
    const sets = this.apiUp ? [...this.#sets.values()].map((set) => this.#observed(set)) : [];
    const { samples } = this;
    const measured = new Set(samples.map(({ peering }) => peering));
    const changed = sets.filter(
      (set) => measured.has(set.peering) || this.#reported.get(set.peering) !== JSON.stringify(set),
    );
    const facts = JSON.stringify(this.facts);
    const asks = JSON.stringify(this.asks);
    const batch = {
      sets: changed,
      ...(facts === this.#factsTold ? {} : { facts: this.facts }),
      ...(asks === this.#asksTold ? {} : { asks: this.asks }),
      ...(samples.length === 0 ? {} : { samples }),
    };
    // As the agent does: a report without an answer may have been taken or not.
    for (const set of changed) this.#reported.delete(set.peering);
    if (batch.facts !== undefined) this.#factsTold = '';
    if (batch.asks !== undefined) this.#asksTold = '';
    await this.#control().exchange.observe(this.#agent, batch);
    this.samples = this.samples.slice(samples.length);
    for (const set of changed) this.#reported.set(set.peering, JSON.stringify(set));
    this.#factsTold = facts;
    this.#asksTold = asks;
  }

  #of(peering: string): Map<string, Thing> {
    const things = this.#things.get(peering) ?? new Map<string, Thing>();
    this.#things.set(peering, things);
    return things;
  }

  #apply(set: DesiredSet): boolean {
    const things = this.#of(set.peering);
    const wanted = new Set<string>();
    for (const { kind, metadata, spec } of set.objects as (DesiredSet['objects'][number] & { spec?: Data })[]) {
      if (kind === this.refuses || isOfLink({ kind })) continue;
      const key = `${kind}/${metadata.name}`;
      wanted.add(key);
      const before = things.get(key);
      const { name, namespace } = metadata;
      things.set(key, {
        kind,
        name,
        ...(namespace === undefined ? {} : { namespace }),
        data: { ...before?.data, ...(spec ? { spec } : {}) },
      });
    }
    const applied = ['Namespace', 'Secret', 'Tenant', 'Identity', 'ResourceSlice'];
    for (const [key, { kind }] of things) if (applied.includes(kind) && !wanted.has(key)) things.delete(key);
    return true;
  }

  #remove(set: DesiredSet, peer: SimulatedCluster | undefined): boolean {
    const things = this.#of(set.peering);
    if (set.role === 'consumer' && this.has(set.peering, 'ResourceSlice')) {
      if (!peer?.apiUp && !set.peerDead) return false;
      if (peer?.apiUp) peer.#of(set.peering).delete('ReplicatedSlice/slice');
    }
    // A provider holds the copy until its consumer takes it back or is declared dead.
    if (set.role === 'provider' && things.has('ReplicatedSlice/slice') && !set.peerDead) return false;
    this.#things.delete(set.peering);
    return true;
  }

  #reconcile(set: DesiredSet, peer: SimulatedCluster | undefined): void {
    const things = this.#of(set.peering);
    const of = (kind: string): Thing | undefined => [...things.values()].find((thing) => thing.kind === kind);
    if (set.role === 'provider') {
      const tenant = of('Tenant');
      if (tenant) {
        const authParams = { ca: 'Y2E=', signedCRT: this.certificate, apiServer: 'https://192.0.2.1:6443' };
        tenant.data = { ...tenant.data, authParams, tenantNamespace: tenant.namespace };
      }
      return;
    }
    const secret = of('Secret');
    if (secret) secret.data = { signedNonce: 'c2ln', csr: 'Y3Ny', publicKey: 'a2V5' };
    const identity = of('Identity');
    const loggedIn = identity?.data.kubeconfigReady === true;
    if (identity) identity.data = { ...identity.data, kubeconfigReady: true };
    const slice = of('ResourceSlice');
    if (!loggedIn || !slice || !peer?.apiUp || !peer.has(set.peering, 'Tenant')) return;
    peer.#of(set.peering).set('ReplicatedSlice/slice', { kind: 'ReplicatedSlice', name: 'slice', data: {} });
    const accepted = ['Authentication', 'Resources'].map((type) => ({ type, status: 'Accepted' }));
    slice.data = { ...slice.data, conditions: accepted, resources: (slice.data.spec as Data).resources };
    things.set(`Node/${set.peer}`, { kind: 'Node', name: set.peer, data: { ready: this.nodeReady } });
  }

  #observed(set: DesiredSet): ObservedSet {
    const objects: ObservedObject[] = [...(this.#things.get(set.peering)?.values() ?? [])].map((thing) => ({
      apiVersion: 'v1',
      kind: thing.kind,
      name: thing.name,
      ...(thing.namespace === undefined ? {} : { namespace: thing.namespace }),
      uid: `${thing.kind}-${thing.name}`,
      data: { ...thing.data },
    }));
    if (this.#applied.has(set.peering)) objects.push(...this.links.observed(set.peer));
    const refused =
      this.refuses !== undefined && set.state === 'present' && set.objects.some(({ kind }) => kind === this.refuses);
    return {
      peering: set.peering,
      role: set.role,
      appliedRevision: this.#applied.get(set.peering) ?? 0,
      objects,
      ...(this.endsByHand && set.state === 'present' ? { ended: true } : {}),
      refusals: refused ? [{ object: `${this.refuses}/ns/name`, code: 'object_not_allowed', message: 'not here' }] : [],
    };
  }
}
