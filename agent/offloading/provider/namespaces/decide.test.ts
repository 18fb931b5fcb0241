/** Any provider, any history of wishes: what is not ours is never touched, and applying decisions ends where they say. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Namespace, RoleBinding } from '#shared/domain/kube-object.ts';
import { safeRules } from '../guests/decide.ts';
import { decide, type Observed } from './decide.ts';
import { remoteBinding, remoteNamespace } from './objects.ts';

const consumer = { mapKey: 'liqo-tenant-cons/prov', origin: 'cons', tenantNamespace: 'liqo-tenant-cons' };

/** Namespaces and bindings as the provider has them; namespaces go at once or, while held, stay terminating. */
class Provider {
  readonly namespaces = new Map<string, Namespace>();
  readonly bindings = new Map<string, RoleBinding>();
  #uid = 0;

  observe(desired: Record<string, string>, deleting = false): Observed {
    return {
      ...consumer,
      ofOtherMaps: 0,
      deleting,
      desired,
      rules: safeRules,
      namespaces: this.namespaces,
      bindings: this.bindings,
    };
  }
  put(namespace: Namespace): void {
    if (this.namespaces.has(namespace.metadata.name)) throw new Error('already exists');
    this.namespaces.set(namespace.metadata.name, {
      ...namespace,
      metadata: { ...namespace.metadata, uid: `u${this.#uid++}` },
    });
  }
  apply(desired: Record<string, string>, deleting = false) {
    const decision = decide(this.observe(desired, deleting));
    for (const { remote, local } of decision.create) this.put(remoteNamespace(remote, local, consumer));
    for (const remote of decision.bind) this.bindings.set(remote, remoteBinding(remote, consumer));
    for (const { remote, uid } of decision.remove) {
      if (this.namespaces.get(remote)?.metadata.uid === uid) this.namespaces.delete(remote);
    }
    return decision;
  }
}

const foreign = (name: string): Namespace => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
const remoteNames = ['a-cons', 'b-cons', 'shared', 'kube-system', 'Bad'];
const wishes = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(...remoteNames), { maxKeys: 3 });

describe('the namespace map of a consumer', () => {
  test('gets no more namespaces than the policy says beside those of other maps of the same consumer', () => {
    const observed = { ...new Provider().observe({ a: 'a-cons', b: 'b-cons' }), ofOtherMaps: 2 };
    const { create, problems } = decide({ ...observed, rules: { ...safeRules, maxNamespaces: 3 } });
    expect(create).toEqual([{ remote: 'a-cons', local: 'a' }]);
    expect(problems.b).toContain('there are 3 namespaces of this consumer');
  });

  test('leads to what is wanted and possible, touches no other namespace, and then rests', () => {
    const others = fc.uniqueArray(fc.constantFrom<string[]>('shared', 'kube-system', 'a-cons'), { maxLength: 2 });
    fc.assert(
      fc.property(others, fc.array(wishes, { minLength: 1, maxLength: 4 }), (theirs, history) => {
        const provider = new Provider();
        for (const name of theirs) provider.put(foreign(name));
        const before = theirs.map((name) => provider.namespaces.get(name));
        for (const desired of history) provider.apply(desired);
        const last = history.at(-1) ?? {};
        for (let i = 0; i < 3; i++) provider.apply(last);
        const rest = provider.apply(last);
        expect([rest.create, rest.remove, rest.bind]).toEqual([[], [], []]);
        expect(theirs.map((name) => provider.namespaces.get(name))).toEqual(before);
        expect(Object.keys(rest.current).sort()).toEqual(Object.keys(last).sort());
        const accepted = Object.values(rest.current).filter(({ phase }) => phase === 'Accepted');
        const ours = [...provider.namespaces.keys()].filter((name) => !theirs.includes(name));
        expect(accepted.map(({ remoteNamespace: name }) => name).sort()).toEqual(ours.sort());
        for (const name of ours) expect(provider.bindings.get(name)?.subjects).toMatchObject([{ name: 'cons' }]);
      }),
      { numRuns: 2_000 },
    );
  });

  test('ends without any namespace of ours when it is deleted', () => {
    fc.assert(
      fc.property(fc.array(wishes, { maxLength: 4 }), (history) => {
        const provider = new Provider();
        provider.put(foreign('shared'));
        for (const desired of history) provider.apply(desired);
        for (let i = 0; i < 2; i++) provider.apply({}, true);
        expect([...provider.namespaces.keys()]).toEqual(['shared']);
        expect(provider.apply({}, true).clean).toBe(true);
      }),
    );
  });

  test('does not wait for namespaces that are being deleted when it is deleted itself', () => {
    const provider = new Provider();
    provider.apply({ a: 'a-cons', b: 'b-cons' });
    expect(decide(provider.observe({}, true))).toMatchObject({ clean: false, remove: [{}, {}] });
    for (const namespace of provider.namespaces.values()) namespace.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    expect(decide(provider.observe({}, true))).toMatchObject({ clean: true, remove: [] });
  });

  test('says what is wrong with each name that it cannot have', () => {
    const provider = new Provider();
    provider.put(foreign('shared'));
    const { problems } = provider.apply({ a: 'shared', b: 'kube-system', c: 'x-cons', d: 'x-cons', e: 'x' });
    expect(problems).toEqual({
      a: expect.stringMatching(/exists here and is not of this consumer/),
      b: expect.stringMatching(/reserved/),
      d: expect.stringMatching(/that of c of the same consumer/),
      e: expect.stringMatching(/names that end with -cons/),
    });
  });
});
