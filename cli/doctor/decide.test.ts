import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { byCause, type CauseCode, causeCodes, exitOf } from './causes.ts';
import { decide } from './decide.ts';
import type { Looked } from './facts.ts';
import { type Fault, faults, type Loose, objectOf, unscheduled, withFaults } from './testing/faults.ts';
import { allWell, now } from './testing/healthy-clusters.ts';

/** A pod of a consumer, at the provider, for which no node was found. */
const guest = (message: string) => ({
  metadata: { name: 'p', namespace: 'shop', labels: { 'liqo.io/managed-by': 'shadowpod' } },
  spec: { containers: [] },
  status: unscheduled(message),
});

const rankOf = (code: CauseCode): number => causeCodes.indexOf(code);

describe('the doctor', () => {
  test('finds nothing where nothing is wrong, in two clusters and in each alone', () => {
    expect(decide(allWell())).toEqual([]);
    for (const one of allWell().clusters) expect(decide({ now, clusters: [one] })).toEqual([]);
  });

  test.each(faults)('names $says as the cause when that is all that is wrong', (fault) => {
    const [first] = decide(withFaults([fault]));
    expect(first?.code).toBe(fault.says);
    expect(first?.evidence.length).toBeGreaterThan(0);
    expect(first?.todo).not.toBe('');
  });

  test('knows of each cause that clusters give how it comes about', () => {
    const elsewhere = [
      'kubeconfig_refused',
      'cluster_silent',
      'looking_forbidden',
      'not_installed',
      'same_cluster_id',
      'partly_read',
      'other_warning',
      'not_peered',
      'agent_unheard',
      'peering_waits',
    ];
    expect([...new Set(faults.map(({ says }) => says)), ...elsewhere].sort()).toEqual([...causeCodes].sort());
  });

  test('puts causes before what they bring about in every mix of faults, and is never at a loss', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...faults), { minLength: 1, selector: objectOf }), (chosen) => {
        const findings = decide(withFaults(chosen));
        expect(findings).toEqual(byCause(findings));
        const [first] = findings;
        const topmost = Math.min(...chosen.map(({ says }) => rankOf(says)));
        // A fault may hide one below it, and never brings about one above the topmost.
        expect(rankOf(first?.code ?? 'other_warning')).toBeLessThanOrEqual(topmost);
        expect(new Set(findings.map((one) => `${one.code} ${one.at} ${one.text}`)).size).toBe(findings.length);
        for (const { code } of findings) expect(exitOf(code)).toBeGreaterThan(9);
      }),
    );
  });

  test('names closed nodes of a provider before the grant that falls with them, and only where something bears it out', () => {
    const nothing = faults.find(({ says }) => says === 'nothing_granted') as Fault;
    const closed = faults.find(({ says }) => says === 'no_open_node') as Fault;
    const both = decide(withFaults([nothing, closed]));
    expect(both.map(({ code }) => code)).toEqual(['no_open_node', 'nothing_granted']);
    expect(both[0]).toMatchObject({ at: 'milan', evidence: ['node milan-1: taint drill=yes:NoSchedule'] });

    const idle = withFaults([closed]);
    const milan = idle.clusters[1]?.facts as Loose;
    milan.status.quotas = [];
    expect(decide(idle)).toEqual([]);
    milan.pods.push(guest('0/1 nodes'));
    expect(decide(idle)[0]).toMatchObject({ code: 'no_open_node' });
    milan.nodes.push({ ...milan.nodes[0], metadata: { name: 'milan-2', labels: {} }, spec: {} });
    expect(decide(idle).map(({ code }) => code)).not.toContain('no_open_node');
  });

  test('names what a guest waits for where all nodes are tainted and a policy lets guests tolerate it', () => {
    const closed = faults.find(({ says }) => says === 'no_open_node') as Fault;
    const tolerated = withFaults([closed]);
    const milan = tolerated.clusters[1]?.facts as Loose;
    milan.status.quotas = [];
    milan.guestTolerations = ['dri*'];
    const waits = guest('0/1 nodes are available: 1 Insufficient cpu.');
    milan.pods.push(waits);
    expect(decide({ now, clusters: tolerated.clusters.slice(1) })[0]).toMatchObject({ code: 'pod_unschedulable' });
    // Its consumer tells of it where that is looked at as well.
    const own = { ...waits, metadata: { name: 'p', namespace: 'shop' }, spec: { containers: [], nodeName: 'milan' } };
    const rome = tolerated.clusters[0]?.facts as Loose;
    rome.pods.push(own);
    expect(decide(tolerated)[0]).toMatchObject({ code: 'pod_unschedulable', at: 'rome' });
  });

  test('has the taint removed that keeps guests away, not one that Kubernetes removes or a policy lets pass', () => {
    const closed = faults.find(({ says }) => says === 'no_open_node') as Fault;
    const all = withFaults([closed]);
    const milan = all.clusters[1]?.facts as Loose;
    milan.guestTolerations = ['gpu'];
    const taint = (key: string) => ({ key, effect: 'NoSchedule' });
    milan.nodes[0].spec.taints.unshift(taint('node.kubernetes.io/disk-pressure'), taint('gpu'));
    expect(decide(all)[0]?.todo).toContain('taint node milan-1 drill:NoSchedule-`');
  });

  test('sends to the nodes of a provider where none is Ready, and does not say that too much was asked', () => {
    const all = allWell();
    const rome = all.clusters[0]?.facts as Loose;
    const message = 'this cluster has no Ready node for pods of guests now; it looks again when one is';
    rome.slices.push({
      metadata: { name: 's' },
      spec: { providerClusterID: 'milan' },
      status: { conditions: [{ type: 'Resources', status: 'Denied', reason: 'NoNodeReady', message }] },
    });
    const [finding] = decide(all);
    expect(finding).toMatchObject({ code: 'nothing_granted', at: 'milan', text: expect.stringContaining(message) });
    expect(finding?.todo).toMatch(/^look at the nodes of milan: (?!.*ask for less)/);
  });

  test('names a kubelet under the name of a virtual node while it reports, by the clock of the API server', () => {
    const reported = (agoMs: number, aheadMs: number) => {
      const all = allWell();
      const rome = all.clusters[0]?.facts as Loose;
      rome.clockAheadMs = aheadMs;
      rome.claimants.push({ node: 'milan', manager: 'kubelet', at: now - aheadMs - agoMs });
      return decide(all).filter(({ code }) => code === 'second_agent');
    };
    expect(reported(30_000, 0)).toMatchObject([{ evidence: ['Node milan: kubelet changed its status 30 s ago'] }]);
    expect(reported(150_000, 0)).toEqual([]);
    expect(reported(30_000, 600_000)).toHaveLength(1);
    expect(reported(150_000, -600_000)).toEqual([]);
  });

  test('says of a cluster that does not answer just that, and goes on with the other', () => {
    const [rome, milan] = allWell().clusters as [Looked, Looked];
    const { facts: _, ...gone } = {
      ...milan,
      silent: { code: 'kube_unreachable' as const, message: 'connection refused' },
    };
    expect(decide({ now, clusters: [rome, gone] })).toMatchObject([{ code: 'cluster_silent', at: 'milan' }]);
    const refused = { ...gone, silent: { code: 'kube_unauthorized' as const, message: '401' } };
    expect(decide({ now, clusters: [refused] })).toMatchObject([{ code: 'kubeconfig_refused' }]);
  });

  test('tells reads that are refused from reads that came to nothing', () => {
    const [rome] = allWell().clusters as [Looked];
    const unread = (code: 'kube_forbidden' | 'kube_timeout') => [
      { what: 'secrets', code: code as 'kube_forbidden', message: 'm' },
    ];
    expect(decide({ now, clusters: [{ ...rome, unread: unread('kube_forbidden') }] })).toMatchObject([
      { code: 'looking_forbidden' },
    ]);
    expect(decide({ now, clusters: [{ ...rome, unread: unread('kube_timeout') }] })).toMatchObject([
      { code: 'partly_read' },
    ]);
  });

  test('finds two clusters of one name, and one without Isthmus', () => {
    const [rome] = allWell().clusters as [Looked];
    const twin = { ...rome, server: 'https://other:6443' };
    expect(decide({ now, clusters: [rome, twin] }).map(({ code }) => code)).toContain('same_cluster_id');
    const { facts: _, ...empty } = { ...rome, installed: false };
    expect(decide({ now, clusters: [empty] })).toMatchObject([{ code: 'not_installed' }]);
  });

  test('passes on a warning of `isthmus status` that it has no cause for', () => {
    const all = allWell();
    const facts = all.clusters[0]?.facts as Loose;
    facts.status.peers[0].status.modules = {
      networking: { enabled: true, conditions: [{ type: 'X', status: 'Error' }] },
    };
    expect(decide(all)).toMatchObject([{ code: 'other_warning', evidence: ['peer milan: X is Error'] }]);
  });
});
