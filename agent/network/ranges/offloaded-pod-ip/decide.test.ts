import { expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { decide, viewsBetweenPeers } from './decide.ts';

const views = ['10.71.0.0/16', '10.81.0.0/16'];
const pod = (more: object = {}, status: object = {}): Pod =>
  ({
    metadata: { name: 'web', namespace: 'shop', uid: 'p1', ...more },
    status: { phase: 'Running', podIP: '10.81.1.5', ...status },
  }) as Pod;
const labels = { 'liqo.io/managed': 'true', 'offloading.liqo.io/pod-name': 'web' };
const ip = (address = '10.81.1.5', more: object = {}): Ip =>
  ({
    metadata: { name: 'web', namespace: 'shop', labels, ownerReferences: [{ uid: 'p1' }], ...more },
    spec: { ip: address },
  }) as unknown as Ip;
const configuration = (peer: string, view: string | undefined, more: object = {}): Configuration =>
  ({
    metadata: { name: peer, labels: { 'liqo.io/remote-cluster-id': peer }, ...more },
    status: view === undefined ? {} : { remote: { cidr: { pod: [view], external: [] } } },
  }) as unknown as Configuration;

test.each([
  { what: 'no link', links: [], is: [] },
  { what: 'one link', links: [configuration('a', '10.71.0.0/16')], is: [] },
  { what: 'two links', links: [configuration('a', '10.71.0.0/16'), configuration('b', '10.81.0.0/16')], is: views },
  {
    what: 'two links, one without ranges yet',
    links: [configuration('a', '10.71.0.0/16'), configuration('b', undefined)],
    is: ['10.71.0.0/16'],
  },
  {
    what: 'two links, one of which goes',
    links: [configuration('a', '10.71.0.0/16'), configuration('b', '10.81.0.0/16', { deletionTimestamp: 't' })],
    is: [],
  },
])('with $what, pods at $is can be reached through this cluster', ({ links, is }) => {
  expect(viewsBetweenPeers(links)).toEqual(is);
});

test('a pod at a peer has an IP that bears its name, belongs to it and has its address', () => {
  expect(decide(pod(), undefined, views)).toEqual({
    do: 'apply',
    ip: {
      apiVersion: 'ipam.liqo.io/v1alpha1',
      kind: 'IP',
      metadata: {
        name: 'web',
        namespace: 'shop',
        labels: { ...labels, 'offloading.liqo.io/pod-namespace': 'shop' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'web', uid: 'p1' }],
      },
      spec: { ip: '10.81.1.5' },
    },
  });
});

test.each([
  { what: 'has it already', of: pod(), has: ip(), does: 'nothing' },
  { what: 'has no address yet', of: pod({}, { podIP: undefined }), has: undefined, does: 'nothing' },
  { what: 'has the address of its node', of: pod({}, { podIP: '192.0.2.4' }), has: undefined, does: 'nothing' },
  {
    what: 'says that it has an address of a pod of ours',
    of: pod({}, { podIP: '10.50.0.1' }),
    has: undefined,
    does: 'nothing',
  },
  { what: 'has ended', of: pod({}, { phase: 'Succeeded' }), has: ip(), does: 'delete' },
  { what: 'is ending', of: pod({ deletionTimestamp: 't' }), has: ip(), does: 'nothing' },
  { what: 'is ending before it had one', of: pod({ deletionTimestamp: 't' }), has: undefined, does: 'nothing' },
  { what: 'is gone', of: undefined, has: ip(), does: 'delete' },
  { what: 'has moved', of: pod(), has: ip('10.71.0.9'), does: 'delete' },
  { what: 'is the next of that name', of: pod({ uid: 'p2' }), has: ip(), does: 'delete' },
  { what: 'has one that goes', of: pod(), has: ip('10.71.0.9', { deletionTimestamp: 't' }), does: 'nothing' },
  { what: 'has one that a person made, for it', of: pod(), has: ip('10.81.1.5', { labels: {} }), does: 'nothing' },
  { what: 'has one that a person made, for another', of: pod(), has: ip('1.2.3.4', { labels: {} }), does: 'tell' },
  {
    what: 'is gone, and a person made one of that name',
    of: undefined,
    has: ip('1.2.3.4', { labels: {} }),
    does: 'nothing',
  },
])('for a pod that $what: $does', ({ of, has, does }) => {
  expect(decide(of, has, views).do).toBe(does);
});

test('without a second link nothing is exposed, and what was is taken back', () => {
  expect(decide(pod(), undefined, []).do).toBe('nothing');
  expect(decide(pod(), ip(), []).do).toBe('delete');
});

test('a name longer than a label can be is cut where a label may end', () => {
  const name = `${'a'.repeat(62)}-b`;
  const action = decide(pod({ name }), undefined, views);
  const found = action.do === 'apply' ? action.ip.metadata.labels?.['offloading.liqo.io/pod-name'] : undefined;
  expect(found).toBe('a'.repeat(62));
});
