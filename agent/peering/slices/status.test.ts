/** The provider's answer: what each condition of the Tenant, grant and history makes of a slice. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideQuota } from '#agent/offloading/provider/quota/controller.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import { answer, platformOf, type SliceFacts } from './status.ts';

const slice = (status?: ResourceSlice['status']): ResourceSlice => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'ResourceSlice',
  metadata: { name: 'milan', namespace: 'liqo-tenant-rome' },
  spec: {},
  ...(status === undefined ? {} : { status }),
});
const base: SliceFacts = {
  authentication: { authParams: { signedCRT: 'Y2VydA==' } },
  tenantCondition: 'Active',
  grant: { accepted: true, resources: { cpu: '2' } },
  storageClasses: [{ storageClassName: 'fast', default: true }],
  nodeLabels: { 'kubernetes.io/arch': 'arm64' },
  nodeConditions: [],
  drained: false,
  nowMs: Date.UTC(2026, 0, 1),
};
const denial = { accepted: false, reason: 'PolicyLimitExceeded', message: 'cpu: asked 3, limit 2' } as const;
const words = (status: ResourceSlice['status']): string[] =>
  (status?.conditions ?? []).map(({ type, status: s }) => `${type} ${s}`);
const granted = answer(slice(), base);

describe('an answer', () => {
  test('accepts both in one go', () => {
    expect(words(granted)).toEqual(['Authentication Accepted', 'Resources Accepted']);
    expect(granted).toMatchObject({
      resources: { cpu: '2' },
      storageClasses: [{ storageClassName: 'fast', default: true }],
      authParams: { signedCRT: 'Y2VydA==' },
      nodeLabels: { 'kubernetes.io/arch': 'arm64' },
    });
  });

  test('a drained slice loses its grant, says why, and gets it back', () => {
    const drained = answer(slice(granted), { ...base, drained: true });
    expect(words(drained)).toEqual(['Authentication Accepted', 'Resources Denied']);
    expect(drained.resources).toBeUndefined();
    expect(drained.conditions?.at(-1)).toMatchObject({ reason: 'ResourceSliceDrained' });
    expect(answer(slice(drained), base).resources).toEqual({ cpu: '2' });
  });

  test('the state of the nodes travels with it, also while the consumer is cordoned', () => {
    const nodeConditions = [
      { type: 'Ready', status: 'False', reason: 'NoNodeReady', message: 'none of the 2' },
    ] as const;
    const cordoned = answer(slice(granted), { ...base, nodeConditions, tenantCondition: 'Cordoned' });
    expect(cordoned).toMatchObject({ resources: { cpu: '2' }, nodeConditions });
  });

  test('forgets what is no longer granted', () => {
    const before = answer(slice(), {
      ...base,
      grant: { accepted: true, resources: { cpu: '2', 'example.com/gpu': '1' } },
    });
    expect(answer(slice(before), base).resources).toEqual({ cpu: '2' });
  });

  test.each<[string, Partial<SliceFacts>, ResourceSlice['status'], string[], unknown]>([
    ['over the limit', { grant: denial }, granted, ['Authentication Accepted', 'Resources Denied'], undefined],
    ['a wrong request', { authentication: { denied: 'wrong CN' } }, granted, ['Authentication Denied'], undefined],
    ['an external class', { grant: undefined }, undefined, ['Authentication Accepted'], undefined],
    [
      'an external class that has answered',
      { grant: undefined },
      granted,
      ['Authentication Accepted', 'Resources Accepted'],
      { cpu: '2' },
    ],
    [
      'cordoned, new',
      { tenantCondition: 'Cordoned' },
      undefined,
      ['Authentication Accepted', 'Resources Denied'],
      undefined,
    ],
    [
      'cordoned, granted before',
      { tenantCondition: 'Cordoned' },
      granted,
      ['Authentication Accepted', 'Resources Accepted'],
      { cpu: '2' },
    ],
    ['drained', { tenantCondition: 'Drained' }, granted, ['Authentication Accepted', 'Resources Denied'], undefined],
  ])('%s', (_name, facts, before, conditions, resources) => {
    const status = answer(slice(before), { ...base, ...facts });
    expect(words(status)).toEqual(conditions);
    expect(status.resources).toEqual(resources);
  });

  test('given again at another time is the same: nothing to write', () => {
    const facts = fc.record<Partial<SliceFacts>>({
      grant: fc.constantFrom<SliceFacts['grant']>(base.grant, denial, undefined),
      tenantCondition: fc.constantFrom('Active' as const, 'Cordoned' as const, 'Drained' as const),
      authentication: fc.constantFrom<SliceFacts['authentication']>(base.authentication, { denied: 'no' }),
    });
    fc.assert(
      fc.property(facts, facts, fc.nat(1e9), (first, second, laterMs) => {
        const before = answer(slice(), { ...base, ...first });
        const once = answer(slice(before), { ...base, ...second });
        expect(answer(slice(once), { ...base, ...second, nowMs: base.nowMs + laterMs })).toEqual(once);
      }),
    );
  });
});

describe('a quota', () => {
  const quota = {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'Quota',
    metadata: { name: 'q' },
    spec: { user: 'u', resources: { cpu: '2' } },
  };
  const denied = answer(slice(granted), { ...base, grant: denial });
  test('holds what was granted', () =>
    expect(decideQuota(slice(granted), undefined)).toEqual({ resources: { cpu: '2' }, cordoned: false }));
  test('is not made for what was never granted', () => expect(decideQuota(slice(denied), undefined)).toBeUndefined());
  test('keeps what runs and admits nothing new after a later denial', () =>
    expect(decideQuota(slice(denied), quota)).toEqual({ resources: { cpu: '2' }, cordoned: true }));
  test.each([
    ['true', true],
    ['', true],
    ['false', false],
    ['0', false],
  ])('with cordon annotation %j is cordoned: %s', (value, cordoned) => {
    const one = slice(granted);
    one.metadata.annotations = { 'liqo.io/cordon': value };
    expect(decideQuota(one, undefined)?.cordoned).toBe(cordoned);
  });
});

test('the platform is that of most nodes, in any order', () => {
  const node = (arch: string): Node => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: arch, labels: { 'kubernetes.io/arch': arch, 'kubernetes.io/os': 'linux' } },
  });
  const nodes = [node('amd64'), node('arm64'), node('arm64')];
  expect(platformOf(nodes)).toEqual({ 'kubernetes.io/arch': 'arm64', 'kubernetes.io/os': 'linux' });
  expect(platformOf([...nodes].reverse())).toEqual(platformOf(nodes));
  expect(platformOf([])).toEqual({});
});
