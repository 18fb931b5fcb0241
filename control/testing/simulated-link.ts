/** The links of a simulated cluster: objects that all peerings with one peer share, and what controllers and gateways make of them. */
import type { ClusterFacts, DesiredSet, KubeManifest, ObservedObject } from '#shared/schema/protocol/agent-protocol.ts';

const kinds: ReadonlySet<string> = new Set(['Configuration', 'GatewayServer', 'GatewayClient', 'PublicKey']);
export const isOfLink = ({ kind }: Pick<KubeManifest, 'kind'>): boolean => kinds.has(kind);

type Objects = ReadonlyMap<string, KubeManifest>;

/** Facts of a cluster whose agent makes links. Every cluster has the same ranges. */
export const linkingFacts = (facts: ClusterFacts): ClusterFacts => ({
  ...facts,
  capabilities: [...facts.capabilities, 'network'],
  network: { podCidrs: ['10.200.0.0/16'], externalCidrs: ['10.70.0.0/16'], nodeAddresses: ['192.0.2.1'] },
});

export class SimulatedLinks {
  readonly #id: string;
  readonly #links = new Map<string, Objects>();
  readonly #connected = new Set<string>();
  /** Where its gateways are reached. */
  address = '198.51.100.1:30000';
  /** Packets cross. */
  up = true;

  constructor(id: string) {
    this.#id = id;
  }

  get peers(): readonly string[] {
    return [...this.#links.keys()];
  }

  /** base64 of 32 bytes, other for each pair and direction. */
  keyFor(peer: string): string {
    return Buffer.from(`${this.#id}>${peer}`.padEnd(32, '.')).toString('base64').slice(0, 44);
  }

  /** All sets of this cluster: of two that want the same object the newer one has its way. */
  apply(sets: Iterable<DesiredSet>): void {
    const wanted = new Map<string, Map<string, KubeManifest>>();
    for (const set of [...sets].sort((a, b) => a.revision - b.revision)) {
      if (set.state !== 'present') continue;
      for (const manifest of set.objects.filter(isOfLink)) {
        const objects = wanted.get(set.peer) ?? new Map<string, KubeManifest>();
        wanted.set(set.peer, objects.set(manifest.kind, manifest));
      }
    }
    this.#links.clear();
    for (const [peer, objects] of wanted) this.#links.set(peer, objects);
  }

  gateway(peer: string): KubeManifest | undefined {
    const objects = this.#links.get(peer);
    return objects?.get('GatewayServer') ?? objects?.get('GatewayClient');
  }

  /** Whether a packet gets from here to the peer's gateway, by what this side was told. */
  #reaches(peer: string, there: SimulatedLinks): boolean {
    const key = this.#links.get(peer)?.get('PublicKey') as { spec?: { publicKey?: string } } | undefined;
    const text = this.gateway(peer)?.metadata.annotations?.['networking.isthmus.dev/peer-candidates'] ?? '[]';
    return key?.spec?.publicKey === there.keyFor(this.#id) && (JSON.parse(text) as string[]).includes(there.address);
  }

  reconcile(peerOf: (peer: string) => SimulatedLinks | undefined): void {
    this.#connected.clear();
    for (const peer of this.#links.keys()) {
      const there = peerOf(peer);
      const kindsOfBoth = [this.gateway(peer)?.kind, there?.gateway(this.#id)?.kind].sort().join();
      const fits = kindsOfBoth === 'GatewayClient,GatewayServer';
      if (there && fits && this.up && there.up && this.#reaches(peer, there) && there.#reaches(this.#id, this)) {
        this.#connected.add(peer);
      }
    }
  }

  observed(peer: string): ObservedObject[] {
    const objects = this.#links.get(peer);
    if (!objects) return [];
    const namespace = `liqo-tenant-${peer}`;
    const object = (kind: string, name: string, data: Record<string, unknown>): ObservedObject => ({
      apiVersion: 'networking.liqo.io/v1beta1',
      kind,
      name,
      namespace,
      uid: `${kind}-${name}`,
      data,
    });
    const cidr = { pod: ['10.201.0.0/16'], external: ['10.71.0.0/16'] };
    const configured = [{ type: 'NetworkCIDRsConfigured', status: 'True' }];
    const made = [...objects.keys()].map((kind) => {
      if (kind === 'Configuration') return object(kind, peer, { remote: { cidr }, conditions: configured });
      return object(kind, peer, kind === 'PublicKey' ? {} : { candidates: [this.address] });
    });
    if (!this.gateway(peer)) return made;
    const value = this.#connected.has(peer) ? 'Connected' : 'Connecting';
    return [
      ...made,
      object('Secret', `gw-${peer}`, { publicKey: this.keyFor(peer) }),
      object('Connection', `gw-${peer}`, { value, mtu: 1320 }),
    ];
  }
}
