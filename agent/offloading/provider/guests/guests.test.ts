/** The rules for guests: which policy's words count, and what becomes of a pod's spec by them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesAny } from '#shared/domain/key-patterns.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { podRequests } from '#shared/domain/pod-resources.ts';
import type { GuestPolicy } from '#shared/schema/isthmus/guest-policy.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import { validateQuota } from '../quota/fits.ts';
import { guestRules, safeRules } from './decide.ts';
import { guestAnnotations, guestSpec, limitations } from './guest-spec.ts';

const policy = (name: string, guests: GuestPolicy, peers = ['*']): PeeringPolicy =>
  ({ metadata: { name }, spec: { asProvider: { enabled: true, peers, guests } } }) as unknown as PeeringPolicy;
const year = 31_536_000;
const spec = (more: object = {}, resources?: object): PodSpec =>
  ({ containers: [{ name: 'app', ...(resources && { resources }) }], ...more }) as PodSpec;
const resourcesOf = (pod: PodSpec) => pod.containers[0]?.resources;

describe('of the rules for a consumer', () => {
  test('the safe ones hold without a policy, and for consumers that no policy is about', () => {
    expect(guestRules([], 'rome')).toEqual(safeRules);
    expect(guestRules([policy('a', { podSecurity: 'privileged' }, ['milan'])], 'rome')).toEqual(safeRules);
  });

  test('each is that of the first policy by name that has it', () => {
    const policies = [
      policy('b', { podSecurity: 'restricted', limitsEnforcement: 'Hard' }),
      policy('a', { podSecurity: 'privileged' }),
    ];
    expect(guestRules(policies, 'rome')).toEqual({
      ...safeRules,
      podSecurity: 'privileged',
      limitsEnforcement: 'Hard',
    });
  });

  test('a pattern matches its text, and with a star at its end any rest', () => {
    expect(['gpu', 'gpu/a', 'gp'].map((text) => matchesAny(['gpu', 'x*'], text))).toEqual([true, false, false]);
    expect(['team/a', 'team', 'x'].map((text) => matchesAny(['team*'], text))).toEqual([true, true, false]);
  });
});

describe('of the spec of a guest’s pod', () => {
  test('a grace period of a year is cut to what the policy allows, and its author is told', () => {
    const endless = spec({ terminationGracePeriodSeconds: year });
    expect(guestSpec(endless, safeRules, 'None').terminationGracePeriodSeconds).toBe(600);
    expect(limitations(endless, {}, safeRules)).toEqual([expect.stringMatching(/is 31536000: .* after 600 /)]);
    const usual = spec({ terminationGracePeriodSeconds: 30 });
    expect(guestSpec(usual, safeRules, 'None')).toBe(usual);
    expect(limitations(usual, {}, safeRules)).toEqual([]);
  });

  test('only tolerations that the policy names and those of every pod are left', () => {
    const tolerations = [
      { operator: 'Exists' },
      { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' },
      { key: 'gpu', operator: 'Exists' },
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
    ];
    const keys = (allowed: string[]) =>
      guestSpec(spec({ tolerations }), { ...safeRules, tolerations: allowed }, 'None').tolerations?.map(
        ({ key }) => key ?? '',
      );
    expect(keys([])).toEqual(['node.kubernetes.io/not-ready']);
    expect(keys(['gpu'])).toEqual(['gpu', 'node.kubernetes.io/not-ready']);
    expect(keys(['*'])).toHaveLength(4);
    expect(limitations(spec({ tolerations }), {}, safeRules)).toEqual([
      expect.stringMatching(/every key, node-role.kubernetes.io\/control-plane, gpu have no effect/),
    ]);
  });

  test('annotations by which nodes attach pods to other networks are left out, those of applications stay', () => {
    const networks = 'k8s.v1.cni.cncf.io/networks';
    const annotations = { [networks]: 'kube-system/admin-lan', 'prometheus.io/scrape': 'true', note: 'x' };
    expect(Object.keys(guestAnnotations(annotations, safeRules))).toEqual(['prometheus.io/scrape', 'note']);
    expect(limitations(spec(), annotations, safeRules)).toEqual([
      expect.stringMatching(/annotations k8s\.v1\.cni\.cncf\.io\/networks are left out/),
    ]);
    expect(guestAnnotations({ 'iam.amazonaws.com/role': 'admin' }, safeRules)).toEqual({});
    const orders = [
      ...['devices.nri.io/container.app', 'mounts.nri.io/container.app', 'devices.gke.io/container.app'],
      ...['cdi.k8s.io/gpu', 'io.containers.trace-syscall', 'org.systemd.property.DeviceAllow', 'run.oci.handler'],
    ];
    expect(guestAnnotations(Object.fromEntries(orders.map((key) => [key, 'x'])), safeRules)).toEqual({});
    const trusting = { ...safeRules, nodeAnnotations: [networks] };
    expect(guestAnnotations(annotations, trusting)).toBe(annotations);
    expect(limitations(spec(), annotations, trusting)).toEqual([]);
  });

  test('thousands of them make one short sentence', () => {
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k8s.ovn.org/a${i}`, 'x']));
    const [said = '', ...more] = limitations(spec(), many, safeRules);
    expect(more).toEqual([]);
    expect(said).toMatch(/k8s\.ovn\.org\/a4, 4995 more are left out/);
    expect(said.length).toBeLessThan(400);
  });

  test('under Soft, requests that are missing come from the limit, else from the policy; under None nothing is filled in', () => {
    const rules = { ...safeRules, defaultLimits: { memory: '128Mi' } };
    expect(resourcesOf(guestSpec(spec(), rules, 'Soft'))).toEqual({
      requests: { cpu: '25m', memory: '64Mi' },
      limits: { memory: '128Mi' },
    });
    expect(resourcesOf(guestSpec(spec({}, { limits: { cpu: '2' } }), rules, 'Soft'))?.requests?.cpu).toBe('2');
    const large = guestSpec(spec({}, { requests: { memory: '1Gi' } }), rules, 'Soft');
    expect(resourcesOf(large)).toEqual({ requests: { cpu: '25m', memory: '1Gi' }, limits: { memory: '1Gi' } });
    expect(resourcesOf(guestSpec(spec(), rules, 'None'))).toBeUndefined();
  });

  test('a request or limit of 0 is as none, of a container as of the pod as a whole', () => {
    const zero = { cpu: '0', memory: 0 };
    const filled = { cpu: '25m', memory: '64Mi' };
    const given = spec({}, { requests: { ...zero, 'nvidia.com/gpu': '0' }, limits: zero });
    expect(resourcesOf(guestSpec(given, safeRules, 'Soft'))).toEqual({
      requests: { 'nvidia.com/gpu': '0', ...filled },
      limits: {},
    });
    expect(resourcesOf(guestSpec(given, safeRules, 'Hard'))).toMatchObject({ limits: filled });
    expect(guestSpec(given, safeRules, 'None')).toBe(given);
    const whole = guestSpec(spec({ resources: { requests: { cpu: '0m', memory: '1Gi' } } }), safeRules, 'Soft');
    expect(whole.resources).toEqual({ requests: { memory: '1Gi' } });
    expect(resourcesOf(whole)?.requests).toEqual({ cpu: '25m' });
    const bounded = spec({}, { requests: zero, limits: { cpu: '2', memory: '1Gi' } });
    expect(resourcesOf(guestSpec(bounded, safeRules, 'Soft'))?.requests).toEqual({ cpu: '2', memory: '1Gi' });
  });

  test('under Hard, limits that are filled in equal the requests', () => {
    const filled = { cpu: '25m', memory: '64Mi' };
    expect(resourcesOf(guestSpec(spec(), safeRules, 'Hard'))).toEqual({ requests: filled, limits: filled });
  });

  test('what the pod requests as a whole is not requested again for its containers', () => {
    const whole = spec({ resources: { requests: { cpu: '1', memory: '1Gi' } } });
    expect(guestSpec(whole, safeRules, 'Soft')).toBe(whole);
  });

  describe('under Hard, where the pod has resources as a whole,', () => {
    const whole = { requests: { cpu: '1', memory: '1Gi' } };
    const hard = (pod: object) =>
      guestSpec({ containers: [{ name: 'app' }], resources: whole, ...pod } as PodSpec, safeRules, 'Hard');
    const both = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { cpu, memory } });

    test('its only container gets all of them, and the pod the limits that are missing', () => {
      expect(hard({})).toEqual({
        containers: [{ name: 'app', resources: both('1', '1Gi') }],
        resources: both('1', '1Gi'),
      });
      expect(hard({ resources: { limits: { cpu: '2' } } })).toEqual({
        containers: [{ name: 'app', resources: both('2', '64Mi') }],
        resources: { requests: { cpu: '2' }, limits: { cpu: '2' } },
      });
    });

    test('containers and sidecars that say nothing get equal parts of what the others leave, init containers what sidecars leave', () => {
      const { containers, initContainers } = hard({
        containers: [{ name: 'a' }, { name: 'b', resources: { limits: { cpu: '400m', memory: '512Mi' } } }],
        initContainers: [{ name: 'first' }, { name: 'beside', restartPolicy: 'Always' }],
      });
      expect(containers.map(({ resources }) => resources)).toEqual([both('300m', '256Mi'), both('400m', '512Mi')]);
      expect(initContainers?.map(({ resources }) => resources)).toEqual([both('700m', '768Mi'), both('300m', '256Mi')]);
    });

    test('a sidecar leaves what an init container after it asks for, and nothing for one before it', () => {
      const first = { name: 'first', resources: { limits: { cpu: '250m', memory: '1Gi' } } };
      const beside = { name: 'beside', restartPolicy: 'Always' };
      const app = { name: 'app', resources: both('1m', '1Mi') };
      const sidecarOf = (initContainers: readonly object[]) =>
        hard({ containers: [app], initContainers, resources: both('2', '2Gi') }).initContainers?.find(
          ({ name }) => name === 'beside',
        )?.resources;
      expect(sidecarOf([beside, first])).toEqual(both('1750m', '1Gi'));
      expect(sidecarOf([first, beside])).toEqual(both('1999m', '2047Mi'));
    });

    test('thousands of containers, each after and beside others, are divided before a webhook ends its time', () => {
      const initContainers = Array.from({ length: 4_000 }, (_, i) => ({
        name: `c${i}`,
        ...(i % 2 === 0 && { restartPolicy: 'Always' }),
      }));
      const given = hard({ initContainers, resources: both('4', '4Gi') }).initContainers ?? [];
      expect(given[0]?.resources?.limits?.cpu).toBe('1m');
      expect(given[1]?.resources?.limits?.cpu).toBe('2');
    });

    test('a container gets nothing where the others have all, and nothing that differs is made equal', () => {
      const full = { name: 'b', resources: both('1', '1Gi') };
      expect(hard({ containers: [{ name: 'a' }, full] }).containers).toEqual([{ name: 'a' }, full]);
      const uneven = { requests: { cpu: '1' }, limits: { cpu: '2' } };
      expect(hard({ resources: uneven }).resources).toEqual(uneven);
    });

    test('whichever containers it has: what is filled in is accepted, and no more than before', () => {
      const amounts = fc.record(
        { cpu: fc.constantFrom('0', '1m', '250m'), memory: fc.constantFrom('0', '1Mi', '100Mi') },
        { requiredKeys: [] },
      );
      const container = fc.record(
        { name: fc.constant('c'), resources: fc.record({ limits: amounts }), restartPolicy: fc.constant('Always') },
        { requiredKeys: ['name'] },
      );
      const quota = {
        metadata: { name: 'q' },
        spec: { user: 'u', limitsEnforcement: 'Hard', resources: { cpu: '9', memory: '9Gi' } },
      };
      fc.assert(
        fc.property(
          fc.array(container, { minLength: 1, maxLength: 3 }),
          fc.array(container, { maxLength: 2 }),
          fc.constantFrom('requests', 'limits'),
          (containers, initContainers, said) => {
            const asked = { containers, initContainers, resources: { [said]: { cpu: '2', memory: '2Gi' } } } as PodSpec;
            const given = guestSpec(asked, safeRules, 'Hard');
            expect(validateQuota(quota as unknown as Quota, given, {})).toEqual({ allowed: true });
            expect(podRequests(given)).toEqual(podRequests(asked));
            // An API server that does not know resources of whole pods keeps what binds each container.
            const { resources: _, ...dropped } = given;
            expect(validateQuota(quota as unknown as Quota, dropped, {})).toEqual({ allowed: true });
          },
        ),
        { numRuns: 2_000 },
      );
    });
  });

  test('whichever containers a pod has, under Soft it requests cpu and memory, and never less than it asked for', () => {
    const amounts = fc.record(
      { cpu: fc.constantFrom('0', '1m', '2'), memory: fc.constantFrom('0', '1Mi', '3Gi') },
      { requiredKeys: [] },
    );
    const container = fc.record(
      { name: fc.constant('c'), resources: fc.record({ requests: amounts, limits: amounts }, { requiredKeys: [] }) },
      { requiredKeys: ['name'] },
    );
    fc.assert(
      fc.property(
        fc.array(container, { minLength: 1, maxLength: 3 }),
        fc.array(container, { maxLength: 2 }),
        (containers, initContainers) => {
          const asked = { containers, initContainers } as PodSpec;
          const given = podRequests(guestSpec(asked, safeRules, 'Soft'));
          for (const [resource, amount] of Object.entries(podRequests(asked)))
            expect((given[resource] ?? 0n) >= amount).toBe(true);
          expect((given.cpu ?? 0n) > 0n && (given.memory ?? 0n) > 0n).toBe(true);
        },
      ),
    );
  });

  test('with null in the place of what is not set is as without it', () => {
    const nothing = { terminationGracePeriodSeconds: null, tolerations: null, initContainers: null, resources: null };
    const given = spec(nothing, { requests: null, limits: null });
    expect(limitations(given, {}, safeRules)).toEqual([]);
    expect(resourcesOf(guestSpec(given, safeRules, 'Soft'))?.requests).toEqual({ cpu: '25m', memory: '64Mi' });
    expect(guestSpec(given, safeRules, 'None')).toBe(given);
  });
});
