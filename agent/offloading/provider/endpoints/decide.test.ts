import { expect, test } from 'vitest';
import type { EndpointSlice } from '#shared/domain/core-kinds.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import type { ShadowEndpointSlice } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { type Decision, decide, isReachable, type Observed } from './decide.ts';

const foreign = (link?: string, server?: string): ForeignCluster =>
  ({
    spec: { clusterID: 'cons' },
    status: {
      modules: {
        networking: { enabled: link !== undefined, conditions: [{ type: 'NetworkConnectionStatus', status: link }] },
      },
      conditions: server === undefined ? [] : [{ type: 'APIServerStatus', status: server }],
    },
  }) as unknown as ForeignCluster;

test.each([
  { link: undefined, server: undefined, is: true },
  { link: 'Established', server: undefined, is: true },
  { link: 'Established', server: 'None', is: true },
  { link: 'Established', server: 'Established', is: true },
  { link: 'Established', server: 'Error', is: false },
  { link: 'Error', server: 'Established', is: false },
  { link: 'Pending', server: undefined, is: false },
])('B104: with link $link and API server $server the consumer is reachable: $is', ({ link, server, is }) => {
  expect(isReachable(foreign(link, server))).toBe(is);
});
test('B104: a consumer that is not known is not reachable', () => expect(isReachable(undefined)).toBe(false));

const ranges = (ready = true): Configuration =>
  ({
    spec: { remote: { cidr: { pod: ['10.10.0.0/16'], external: ['10.70.0.0/16'] } } },
    ...(ready ? { status: { remote: { cidr: { pod: ['10.110.0.0/16'], external: ['10.170.0.0/16'] } } } } : {}),
  }) as unknown as Configuration;
const shadow = (change: { metadata?: object; endpoints?: object[]; template?: object } = {}): ShadowEndpointSlice =>
  ({
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'ShadowEndpointSlice',
    metadata: {
      name: 'web',
      namespace: 'demo-cons',
      uid: 's1',
      labels: { 'offloading.liqo.io/origin': 'cons' },
      ...change.metadata,
    },
    spec: {
      template: {
        addressType: 'IPv4',
        endpoints: change.endpoints ?? [{ addresses: ['10.10.0.1'], conditions: { ready: true } }],
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        ...change.template,
      },
    },
  }) as ShadowEndpointSlice;
const observe = (change: Partial<Observed> = {}): Observed => ({
  shadow: shadow(),
  namespaceOrigin: 'cons',
  foreign: foreign('Established'),
  configuration: (peer) => (peer === 'cons' ? ranges() : undefined),
  unlinked: [],
  named: [],
  directPeers: [],
  ...change,
});
const made = (of: Observed = observe()): EndpointSlice => {
  const decision = decide(of);
  if (decision.do !== 'apply') throw new Error(decision.do);
  return { ...decision.slice, metadata: { ...decision.slice.metadata, uid: 'e1' } };
};
const addresses = (slice: EndpointSlice): string[] => (slice.endpoints ?? []).flatMap((one) => one.addresses);

interface Row {
  readonly when: string;
  readonly observed: Partial<Observed>;
  readonly does: Decision['do'];
}
test.each<Row>([
  { when: 'nothing is there', observed: { shadow: undefined }, does: 'nothing' },
  { when: 'the object is new', observed: {}, does: 'apply' },
  { when: 'the slice is as it should be', observed: { slice: made() }, does: 'nothing' },
  { when: 'the slice was edited by hand', observed: { slice: { ...made(), endpoints: [] } }, does: 'apply' },
  { when: 'the link broke', observed: { slice: made(), foreign: foreign('Error') }, does: 'apply' },
  { when: 'the object is gone', observed: { shadow: undefined, slice: made() }, does: 'delete' },
  {
    when: 'the object was recreated',
    observed: { shadow: shadow({ metadata: { uid: 's2' } }), slice: made() },
    does: 'delete',
  },
  {
    when: 'the kind of address changed',
    observed: { shadow: shadow({ template: { addressType: 'FQDN' } }), slice: made() },
    does: 'delete',
  },
  {
    when: 'the object went and its dependents were to stay',
    observed: { shadow: undefined, slice: { ...made(), metadata: { ...made().metadata, ownerReferences: [] } } },
    does: 'delete',
  },
  {
    when: 'a slice of that name is a stranger',
    observed: { slice: { ...made(), metadata: { name: 'web', uid: 'x' } } },
    does: 'refuse',
  },
  {
    when: 'only a stranger is there',
    observed: { shadow: undefined, slice: { ...made(), metadata: { name: 'web', uid: 'x' } } },
    does: 'nothing',
  },
  { when: 'the namespace is of another consumer', observed: { namespaceOrigin: 'other' }, does: 'refuse' },
  { when: 'the namespace is of no consumer', observed: { namespaceOrigin: undefined }, does: 'refuse' },
  {
    when: 'there is no kind of address',
    observed: { shadow: shadow({ template: { addressType: undefined } }) },
    does: 'refuse',
  },
  {
    when: 'endpoints are names, which lead anywhere',
    observed: {
      shadow: shadow({ template: { addressType: 'FQDN' }, endpoints: [{ addresses: ['metadata.google.internal'] }] }),
    },
    does: 'refuse',
  },
  {
    when: 'endpoints are addresses of IPv6',
    observed: { shadow: shadow({ template: { addressType: 'IPv6' }, endpoints: [{ addresses: ['fd00:ec2::254'] }] }) },
    does: 'refuse',
  },
  { when: 'the ranges have no names here yet', observed: { configuration: () => ranges(false) }, does: 'wait' },
])('when $when: $does', ({ observed, does }) => {
  expect(decide(observe(observed)).do).toBe(does);
});

const direct = (data: string) => ({ annotations: { 'liqo.io/direct-connections-data': data } });
const third = JSON.stringify({ clusterAddresses: { third: ['10.30.0.1'] } });
const endpoints = ['10.10.0.1', '10.70.0.2', '10.30.0.1', '192.0.2.1'].map((address) => ({ addresses: [address] }));
test.each([
  {
    what: 'addresses outside of the ranges of the consumer are left out',
    metadata: {},
    directPeers: ['third'],
    is: ['10.110.0.1', '10.170.0.2'],
  },
  {
    what: 'B105: direct ones are in the view of their own cluster, where a policy names it',
    metadata: direct(third),
    directPeers: ['third'],
    is: ['10.110.0.1', '10.170.0.2', '10.110.0.1'],
  },
  {
    what: 'B105: direct ones are left out where no policy names their cluster, to which a Service here would be a way in',
    metadata: direct(third),
    directPeers: ['fourth'],
    is: ['10.110.0.1', '10.170.0.2'],
  },
  {
    what: 'what is no list of direct ones says nothing',
    metadata: direct('{"clusterAddresses":'),
    directPeers: ['third'],
    is: ['10.110.0.1', '10.170.0.2'],
  },
])('$what', ({ metadata, directPeers, is }) => {
  const other = {
    spec: { remote: { cidr: { pod: ['10.30.0.0/16'] } } },
    status: { remote: { cidr: { pod: ['10.110.0.0/16'] } } },
  };
  const configuration = (peer: string) => (peer === 'cons' ? ranges() : (other as unknown as Configuration));
  const slice = made(observe({ shadow: shadow({ metadata, endpoints }), configuration, directPeers }));
  expect(addresses(slice)).toEqual(is);
  expect(slice.metadata.annotations).not.toHaveProperty('liqo.io/direct-connections-data');
});

test('without a link an address stays what it is only in a range that a policy names', () => {
  const of = (named: string[]) =>
    addresses(made(observe({ foreign: foreign(), configuration: () => undefined, named })));
  expect(of([])).toEqual([]);
  expect(of(['10.20.0.0/16'])).toEqual([]);
  expect(of(['10.20.0.0/16', '10.10.0.0/24'])).toEqual(['10.10.0.1']);
});

test('without a link a named address that belongs to something else here is left out, with the reason', () => {
  const decision = decide(
    observe({
      shadow: shadow({ endpoints: [{ addresses: ['10.10.0.1'] }, { addresses: ['10.20.0.1'] }] }),
      foreign: foreign(),
      configuration: () => undefined,
      unlinked: [{ real: '10.10.0.0/16', holder: 'Network liqo/pod-cidr' }],
      named: ['10.0.0.0/8'],
    }),
  );
  if (decision.do !== 'apply') throw new Error(decision.do);
  expect(addresses(decision.slice)).toEqual(['10.20.0.1']);
  expect(decision.dropped).toContain('left out: 10.10.0.1; there is no link to cluster cons');
});
