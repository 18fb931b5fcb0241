/** The desired-set plan against a cluster that only remembers: any start reaches the goal, and a second pass plans nothing. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { derivedRefs, type LiveObject, manifestRef, type Plan, planSet, refText } from './plan.ts';

const manifest = (kind: string, name: string, extra: Record<string, unknown> = {}): KubeManifest => ({
  apiVersion: 'v1',
  kind,
  metadata: kind === 'Namespace' ? { name } : { name, namespace: 'liqo-tenant-milan' },
  ...extra,
});
const hashOf = (m: KubeManifest) => JSON.stringify(m);

const consumerObjects = [
  manifest('Namespace', 'liqo-tenant-milan'),
  manifest('Secret', 'liqo-signed-nonce'),
  manifest('ResourceSlice', 'milan'),
  manifest('Identity', 'controlplane-milan'),
];
const present: DesiredSet = {
  peering: 'pe_1',
  role: 'consumer',
  peer: 'milan',
  revision: 7,
  state: 'present',
  peerDead: false,
  objects: consumerObjects,
};
const absent: DesiredSet = { ...present, state: 'absent', objects: [] };

const liveOf = (m: KubeManifest, over: Partial<LiveObject> = {}): LiveObject => ({
  kind: m.kind,
  ref: manifestRef(m),
  uid: `uid-${m.kind}-${m.metadata.name}`,
  deleting: false,
  peering: 'pe_1',
  appliedHash: hashOf(m),
  ...over,
});
const derived = (kind: string, name: string): LiveObject => ({
  kind,
  ref: { name },
  uid: `uid-${kind}`,
  deleting: false,
});

const input = (
  set: DesiredSet,
  live: readonly LiveObject[],
  over: { wantedElsewhere?: string[]; refused?: string[] } = {},
) => ({
  set,
  live,
  hashOf,
  wantedElsewhere: new Set(over.wantedElsewhere ?? []),
  refused: new Set(over.refused ?? []),
});

/** A cluster that does what the plan says; objects with finalizers linger as deleting until `release`. */
class RememberingCluster {
  objects: LiveObject[];
  readonly #lingering: ReadonlySet<string>;
  constructor(objects: readonly LiveObject[], lingering: readonly string[] = []) {
    this.objects = [...objects];
    this.#lingering = new Set(lingering);
  }
  do(plan: Plan): void {
    for (const m of plan.apply) {
      const ref = refText(m.kind, manifestRef(m));
      this.objects = [...this.objects.filter((o) => refText(o.kind, o.ref) !== ref), liveOf(m)];
    }
    for (const gone of plan.remove) {
      if (!this.objects.includes(gone)) throw new Error(`removes ${refText(gone.kind, gone.ref)}, which is not there`);
      this.objects = this.#lingering.has(gone.kind)
        ? this.objects.map((o) => (o === gone ? { ...o, deleting: true } : o))
        : this.objects.filter((o) => o !== gone);
    }
  }
  release(): void {
    const slices = this.objects.filter((o) => o.kind === 'ResourceSlice' && !o.deleting);
    this.objects = this.objects.filter((o) => !o.deleting);
    // Controllers take derived objects down once their slice goes.
    if (slices.length === 0) this.objects = this.objects.filter((o) => o.kind !== 'VirtualNode' && o.kind !== 'Node');
  }
}

describe('a present set', () => {
  test('is applied in order, the namespace first', () => {
    expect(planSet(input(present, [])).apply.map((m) => m.kind)).toEqual([
      'Namespace',
      'Secret',
      'ResourceSlice',
      'Identity',
    ]);
  });

  test('any mixture of stale, missing and superfluous objects reaches the goal, and a second pass plans nothing', () => {
    const some = fc
      .subarray(consumerObjects)
      .chain((chosen) =>
        fc.tuple(...chosen.map((m) => fc.boolean().map((stale) => liveOf(m, stale ? { appliedHash: 'old' } : {})))),
      );
    fc.assert(
      fc.property(some, fc.boolean(), (start, extra) => {
        const cluster = new RememberingCluster(
          extra ? [...start, liveOf(manifest('ResourceSlice', 'forgotten'))] : start,
        );
        cluster.do(planSet(input(present, cluster.objects)));
        const second = planSet(input(present, cluster.objects));
        expect(second).toMatchObject({ apply: [], remove: [] });
        expect(second.waitingOn).toBeUndefined();
        expect(cluster.objects.map((o) => o.kind).sort()).toEqual(['Identity', 'Namespace', 'ResourceSlice', 'Secret']);
      }),
    );
  });

  test('waits with everything while its namespace is still terminating', () => {
    const plan = planSet(input(present, [liveOf(manifest('Namespace', 'liqo-tenant-milan'), { deleting: true })]));
    expect(plan).toMatchObject({ apply: [], waitingOn: 'namespace liqo-tenant-milan is still being deleted' });
  });

  test('keeps what exists when the cluster has come to refuse it', () => {
    const live = consumerObjects.map((m) => liveOf(m, { appliedHash: 'old' }));
    const refused = consumerObjects.map((m) => refText(m.kind, manifestRef(m)));
    expect(planSet(input(present, live, { refused }))).toMatchObject({ apply: [], remove: [] });
  });

  test('does not fight over the namespace with the opposite peering', () => {
    const shared = liveOf(manifest('Namespace', 'liqo-tenant-milan'), { peering: 'pe_2', appliedHash: 'theirs' });
    expect(planSet(input(present, [shared])).apply.map((m) => m.kind)).not.toContain('Namespace');
  });
});

describe('an absent set', () => {
  test('gives capacity back first, then the identity, then the namespace', () => {
    const cluster = new RememberingCluster(
      [...consumerObjects.map((m) => liveOf(m)), derived('VirtualNode', 'milan'), derived('Node', 'milan')],
      ['ResourceSlice'],
    );
    const removed: string[][] = [];
    for (let pass = 0; pass < 10; pass += 1) {
      const plan = planSet(input(absent, cluster.objects));
      if (plan.clean) break;
      if (plan.remove.length > 0) removed.push(plan.remove.map((o) => o.kind));
      cluster.do(plan);
      if (plan.remove.length === 0) cluster.release();
    }
    expect(removed).toEqual([['ResourceSlice'], ['Identity'], expect.arrayContaining(['Secret', 'Namespace'])]);
    expect(planSet(input(absent, cluster.objects)).clean).toBe(true);
  });

  test('takes the rights of the consumer away before anything else at the provider', () => {
    const live = [
      liveOf(manifest('Tenant', 'rome')),
      liveOf(manifest('Namespace', 'liqo-tenant-milan')),
      { ...derived('ResourceSlice', 'milan'), ref: { name: 'milan', namespace: 'liqo-tenant-milan' } },
    ];
    expect(planSet(input({ ...absent, role: 'provider' }, live)).remove.map((o) => o.kind)).toEqual(['Tenant']);
  });

  test('leaves the namespace to the opposite peering', () => {
    const live = [liveOf(manifest('Namespace', 'liqo-tenant-milan'))];
    expect(planSet(input(absent, live, { wantedElsewhere: ['Namespace//liqo-tenant-milan'] })).clean).toBe(true);
  });

  test('names what it waits for', () => {
    const plan = planSet(input(absent, [derived('VirtualNode', 'milan')]));
    expect(plan.waitingOn).toBe('removal of VirtualNode milan');
  });

  test('marks a dead peer so that nothing waits for it', () => {
    const dead = { ...absent, peerDead: true };
    const home = liveOf(manifest('Namespace', 'liqo-tenant-milan'));
    const node = derived('VirtualNode', 'milan');
    expect(planSet(input(dead, [home, node])).markPeerDead).toBe(true);
    // Peered by hand, in a namespace of the usual name or of any other: a broker has no say in it.
    const { peering: _, ...byHand } = home;
    for (const live of [[node], [byHand, node, liveOf(manifest('ResourceSlice', 'milan'))]])
      expect(planSet(input(dead, live)).markPeerDead).toBe(false);
  });
});

describe('a link that two opposite peerings share', () => {
  const gateway = manifest('GatewayServer', 'milan');
  const linked: DesiredSet = { ...present, objects: [...consumerObjects, gateway] };
  const connection = {
    ...derived('Connection', 'gw-milan'),
    ref: { namespace: 'liqo-tenant-milan', name: 'gw-milan' },
  };
  const secret = { ...connection, kind: 'Secret', uid: 'uid-gw' };
  const link = [liveOf(gateway), connection, secret];
  const others = [gateway, ...consumerObjects.slice(0, 1)].flatMap((m) => [
    refText(m.kind, manifestRef(m)),
    ...derivedRefs(m),
  ]);

  test('stays, with what its gateway brought, when one of them ends', () => {
    const plan = planSet(input(absent, link, { wantedElsewhere: others }));
    expect(plan).toMatchObject({ remove: [], clean: true });
  });

  test('goes when the last one ends, before the namespace and after the slice', () => {
    const cluster = new RememberingCluster([...link, ...consumerObjects.map((m) => liveOf(m))]);
    const removed: string[][] = [];
    for (let pass = 0; pass < 10 && !planSet(input(absent, cluster.objects)).clean; pass += 1) {
      const plan = planSet(input(absent, cluster.objects));
      removed.push(plan.remove.map((o) => o.kind).sort());
      cluster.do(plan);
    }
    expect(removed).toEqual([
      ['ResourceSlice'],
      ['Identity'],
      ['Connection', 'GatewayServer'],
      ['Namespace', 'Secret', 'Secret'],
    ]);
  });

  test('is written by the set that knows more, and by it alone', () => {
    const stale = [
      ...consumerObjects.map((m) => liveOf(m)),
      liveOf(gateway, { peering: 'pe_2', appliedHash: 'newer' }),
    ];
    const ref = refText('GatewayServer', manifestRef(gateway));
    const shared = input(linked, stale, { wantedElsewhere: [ref] });
    expect(planSet({ ...shared, leftToOthers: new Set([ref]) })).toMatchObject({ apply: [], remove: [] });
    expect(planSet(shared).apply).toEqual([gateway]);
  });

  test('is taken over from a peering that has ended, so that its end is found', () => {
    const left = [...consumerObjects.map((m) => liveOf(m)), liveOf(gateway, { peering: 'pe_0' })];
    expect(planSet(input(linked, left)).apply).toEqual([gateway]);
    expect(
      planSet(
        input(
          linked,
          [...consumerObjects, gateway].map((m) => liveOf(m)),
        ),
      ).apply,
    ).toEqual([]);
  });
});
