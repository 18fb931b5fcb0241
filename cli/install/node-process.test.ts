import { describe, expect, test } from 'vitest';
import { settleNodeProcess } from './node-process.ts';

const one = { nodes: ['a'], hasNetwork: true };

describe('the work of nodes', () => {
  test.each([
    { asked: undefined, facts: one, wants: 'shared', when: 'there is one node' },
    { asked: undefined, facts: { ...one, nodes: ['a', 'b'] }, wants: 'own', when: 'there are two' },
    { asked: undefined, facts: { ...one, nodes: [] }, wants: 'own', when: 'there is none yet' },
    { asked: undefined, facts: { ...one, replicas: 2 }, wants: 'own', when: 'two replicas are asked for' },
    { asked: undefined, facts: { ...one, hasNetwork: false }, wants: 'own', when: 'there is no network' },
    { asked: undefined, facts: { ...one, installed: 'own' }, wants: 'own', when: 'it was before' },
    { asked: undefined, facts: { ...one, installed: 'shared', nodes: ['a', 'b'] }, wants: 'own', when: 'it has grown' },
    { asked: 'own', facts: one, wants: 'own', when: 'that is asked for' },
    { asked: 'shared', facts: one, wants: 'shared', when: 'that is asked for, too' },
  ] as const)('is done in $wants processes when $when', ({ asked, facts, wants }) => {
    expect(settleNodeProcess(asked, facts)).toBe(wants);
  });

  test.each([
    { facts: { ...one, nodes: ['a', 'b'] }, why: 'the cluster has 2 nodes' },
    { facts: { ...one, replicas: 3 }, why: '--replicas is 3' },
    { facts: { ...one, hasNetwork: false }, why: '--no-network' },
  ])('is not shared when $why', ({ facts, why }) => {
    expect(() => settleNodeProcess('shared', facts)).toThrow(why);
  });
});
