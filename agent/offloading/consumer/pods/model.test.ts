import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TwoSides } from '#agent/testing/two-sides.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { apply } from './apply.ts';
import { pruneLocalPod, pruneRemotePod, pruneShadowPod } from './cache-transforms.ts';
import { type Context, decide, type Mapping, type Observed } from './decide.ts';
import { context } from './testing/local-and-remote.ts';

const names = ['a', 'b'] as const;
const name = fc.constantFrom('a' as const, 'a' as const, 'b' as const);
const image = fc.constantFrom('i:1', 'i:2', 'i:3');
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ op: fc.constant('create' as const), name, image }) },
  fc.record({ op: fc.constant('delete' as const), name }),
  fc.record({ op: fc.constant('forceDelete' as const), name }),
  fc.record({ op: fc.constant('edit' as const), name, image }),
  fc.record({ op: fc.constant('deleteRemote' as const), name }),
  fc.record({ op: fc.constant('deleteShadow' as const), name }),
  { weight: 4, arbitrary: fc.record({ op: fc.constant('provider' as const), name }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('report' as const),
      name,
      phase: fc.constantFrom('Running' as const, 'Running' as const, 'Succeeded' as const, 'Failed' as const),
      restarts: fc.nat({ max: 3 }),
    }),
  },
  fc.record({
    op: fc.constant('map' as const),
    kind: fc.constantFrom('accepted' as const, 'held' as const, 'accepted' as const),
  }),
  fc.record({ op: fc.constant('nodeReady' as const), ready: fc.boolean() }),
  /** An event arrives: our view of one name, on one side, becomes what is. Others stay late; repeating is harmless; never is dropping. */
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('hear' as const),
      name,
      side: fc.constantFrom('pods' as const, 'shadows' as const, 'remotes' as const),
    }),
  },
  { weight: 6, arbitrary: fc.record({ op: fc.constant('reconcile' as const), name }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const mappings: Readonly<Record<'accepted' | 'held', Mapping>> = {
  accepted: { kind: 'accepted', remoteNamespace: 'demo-cons' },
  held: { kind: 'held', why: 'the provider has not yet created it' },
};

/** The agent over two sides that it hears of late, in any order, or not at all. */
class Agent {
  readonly sides = new TwoSides();
  readonly views: Record<'pods' | 'shadows' | 'remotes', Map<string, unknown>> = {
    pods: new Map(),
    shadows: new Map(),
    remotes: new Map(),
  };
  mapping: Mapping = mappings.accepted;
  nodeReady = true;
  #tick = 0;

  hear(side: 'pods' | 'shadows' | 'remotes', key: string): void {
    const lean = { pods: pruneLocalPod, shadows: pruneShadowPod, remotes: pruneRemotePod }[side] as (
      object: unknown,
    ) => unknown;
    const object = this.sides[side].get(key);
    if (object) this.views[side].set(key, lean(structuredClone(object)));
    else this.views[side].delete(key);
  }

  observed(key: string): Observed {
    return {
      local: this.views.pods.get(key) as Observed['local'],
      shadow: this.views.shadows.get(key) as Observed['shadow'],
      remote: this.views.remotes.get(key) as Observed['remote'],
      mapping: this.mapping,
      nodeReady: this.nodeReady,
    };
  }

  context(): Context {
    this.#tick++;
    const now = new Date(Date.UTC(2026, 0, 1) + this.#tick * 1_000).toISOString().replace(/\.\d+Z/, 'Z');
    return { ...context, now };
  }

  async reconcile(key: string): Promise<void> {
    const observed = this.observed(key);
    const context = this.context();
    const subject = { key, local: observed.local, shadow: observed.shadow, remoteNamespace: 'demo-cons', context };
    const deps = {
      local: { api: this.sides.local, events: { emit: () => undefined } },
      peer: this.sides.peer,
      log: silentLog,
      written: { wrote: () => undefined, deleted: () => undefined },
      creator: { get: () => 'cons', learn: () => undefined },
      refusals: { count: () => 1, forget: () => undefined },
    };
    const before = this.sides.pods.get(key);
    // A pass on an old view may lose a race; then it is tried again later, as the controller does.
    await apply(decide(observed, context), subject, deps, new AbortController().signal).catch(
      (error: { code?: string }) => {
        if (!error.code?.startsWith('kube_')) throw error;
      },
    );
    const twin = this.sides.remotes.get(key);
    const ran = twin?.metadata.annotations?.[isthmusAnnotation.localPodUid];
    if (before && !this.sides.pods.has(key) && ran === before.metadata.uid)
      throw new Error(`the name of ${key} was given away while it still ran at the provider`);
  }

  async take(action: Step): Promise<void> {
    const { sides } = this;
    switch (action.op) {
      case 'create':
        return sides.createPod(action.name, action.image);
      case 'delete':
        return sides.deletePod(action.name);
      case 'forceDelete':
        return void sides.pods.delete(action.name);
      case 'edit':
        return sides.edit(action.name, action.image);
      case 'deleteRemote':
        return void sides.remotes.delete(action.name);
      case 'deleteShadow':
        return void sides.shadows.delete(action.name);
      case 'provider':
        return sides.providerLooks(action.name);
      case 'report':
        return sides.reports(action.name, action.phase, action.restarts);
      case 'map':
        this.mapping = mappings[action.kind];
        return;
      case 'nodeReady':
        this.nodeReady = action.ready;
        return;
      case 'hear':
        return this.hear(action.side, action.name);
      case 'reconcile':
        return this.reconcile(action.name);
    }
  }

  /** Everything is heard and looked at until nothing is written any more; the number of rounds is bounded. */
  async calm(): Promise<void> {
    for (let round = 0; round < 12; round++) {
      const before = this.sides.writes;
      for (const key of names) {
        this.sides.providerLooks(key);
        for (const side of ['pods', 'shadows', 'remotes'] as const) this.hear(side, key);
        await this.reconcile(key);
      }
      if (this.sides.writes === before && round > 1) return;
    }
    throw new Error('still writing after 12 rounds');
  }
}

test('after any changes, observed in any order, both sides agree in the end and nothing is left to do', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
      const agent = new Agent();
      for (const action of steps) await agent.take(action);
      agent.mapping = mappings.accepted;
      agent.nodeReady = true;
      await agent.calm();
      const { pods, shadows, remotes } = agent.sides;
      for (const key of names) {
        for (const side of ['pods', 'shadows', 'remotes'] as const) agent.hear(side, key);
        expect(decide(agent.observed(key), agent.context())).toEqual([]);
        const [pod, shadow, remote] = [pods.get(key), shadows.get(key), remotes.get(key)];
        expect(pod?.metadata.deletionTimestamp).toBeUndefined();
        if (!pod) expect(shadow).toBeUndefined();
        if (shadow) expect(shadow.metadata.annotations?.[isthmusAnnotation.localPodUid]).toBe(pod?.metadata.uid);
        if (pod && remote?.status?.conditions) {
          expect(pod.status?.phase).toBe(remote.status.phase);
        }
        if (pod && shadow && !['Succeeded', 'Failed'].includes(pod.status?.phase ?? '')) {
          expect(shadow.spec.pod.containers[0]?.image).toBe(pod.spec?.containers[0]?.image);
          expect(shadow.metadata.labels?.tier).toBe(pod.metadata.labels?.tier);
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

test('restarts never go backwards while a pod lives, however often its remote pod is recreated', async () => {
  const life = fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 5 }), async (lives) => {
      const agent = new Agent();
      agent.sides.createPod('a', 'i:1');
      let last = 0;
      let expected = 0;
      for (const [index, counts] of lives.entries()) {
        if (index > 0) {
          agent.sides.remotes.delete('a');
          expected += 1;
        }
        await agent.calm();
        const base = expected;
        for (const count of [...counts].sort((a, b) => a - b)) {
          agent.sides.reports('a', 'Running', count);
          await agent.calm();
          const shown = agent.sides.pods.get('a')?.status?.containerStatuses?.[0]?.restartCount ?? -1;
          expect(shown).toBe(base + count);
          expect(shown).toBeGreaterThanOrEqual(last);
          last = shown;
        }
        expected = last;
      }
    }),
    { numRuns: 100 },
  );
});
