import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { podUsage } from '#shared/domain/pod-resources.ts';
import { type GuestRules, safeRules } from '../guests/decide.ts';
import { guestSpec, limitations } from '../guests/guest-spec.ts';
import { classProblem, limitRangeProblem, qosClassOf, withClassKept } from '../guests/qos-class.ts';
import { validateGuestPod } from './pod-sandbox.ts';

const containers = [{ name: 'main', image: 'web:1' }];
const judge = (more: object, rules: Partial<GuestRules> = {}, nodeSelector: Record<string, string> = {}) =>
  validateGuestPod({ containers, ...more }, {}, { rules: { ...safeRules, ...rules }, nodeSelector });
const refused = (field: string) => ({
  allowed: false,
  code: 'sandbox_refused',
  message: expect.stringContaining(`spec.pod.${field}:`),
});

describe('volumes', () => {
  test('that show nothing of the node or its network are taken', () => {
    const volumes = [
      { name: 'scratch', emptyDir: {} },
      { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
      { name: 'config', configMap: { name: 'c' } },
      { name: 'secret', secret: { secretName: 's' } },
      { name: 'who', downwardAPI: { items: [] } },
      { name: 'disk', persistentVolumeClaim: { claimName: 'd' } },
      { name: 'own', ephemeral: { volumeClaimTemplate: {} } },
    ];
    expect(judge({ volumes })).toMatchObject({ allowed: true });
  });

  test.each([
    ['hostPath', { path: '/' }],
    ['nfs', { server: '10.0.0.1', path: '/' }],
    ['iscsi', { targetPortal: '10.0.0.1', iqn: 'i', lun: 0 }],
    ['rbd', { monitors: ['10.0.0.1'], image: 'i' }],
    ['flexVolume', { driver: 'd' }],
    ['gitRepo', { repository: 'r' }],
    ['csi', { driver: 'd' }],
    ['image', { reference: 'r' }],
    ['invented', {}],
  ])('of type %s are refused by name, also beside an accepted type, unless the policy has the type', (type, source) => {
    const volumes = [{ name: 'root', emptyDir: {}, [type]: source }];
    const verdict = judge({ volumes });
    expect(verdict).toMatchObject(refused(`volumes[0].${type}`));
    expect(verdict).toMatchObject({ message: expect.stringMatching(/volume root .*accepted are configMap,/) });
    const allowed = ['emptyDir', type] as unknown as GuestRules['volumes'];
    expect(judge({ volumes }, { volumes: allowed, podSecurity: 'privileged' })).toMatchObject({ allowed: true });
  });
});

describe('identity', () => {
  const projected = (source: object) => ({
    volumes: [{ name: 'v', projected: { sources: [{ secret: {} }, source] } }],
  });

  test.each([
    ['serviceAccountName', { serviceAccountName: 'deployer' }],
    ['serviceAccount', { serviceAccountName: 'default', serviceAccount: 'deployer' }],
    [
      'volumes[0].projected.sources[1].serviceAccountToken.audience',
      projected({ serviceAccountToken: { path: 't', audience: 'vault' } }),
    ],
    ['volumes[0].projected.sources[1].podCertificate', projected({ podCertificate: { signerName: 'a/b' } })],
    ['volumes[0].projected.sources[1].invented', projected({ invented: {} })],
  ])('by %s is refused in %j', (field, more) => {
    expect(judge(more)).toMatchObject(refused(field));
  });

  test('without rights, and what the policy names, is accepted', () => {
    expect(judge({ serviceAccountName: 'default' })).toMatchObject({ allowed: true });
    expect(judge(projected({ serviceAccountToken: { path: 't' } }))).toMatchObject({ allowed: true });
    const rules = { serviceAccounts: ['of-guests-*'], tokenAudiences: ['vault'] };
    const more = {
      ...projected({ serviceAccountToken: { path: 't', audience: 'vault' } }),
      serviceAccountName: 'of-guests-web',
    };
    expect(judge(more, rules)).toMatchObject({ allowed: true });
  });
});

describe('placement', () => {
  const term = (expression: object) => ({ nodeSelectorTerms: [expression] });
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  const controlPlane = { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' };

  test.each([
    ['nodeName', { nodeName: 'worker' }],
    ['nodeSelector', { nodeSelector: { 'node-role.kubernetes.io/control-plane': '' } }],
    [
      'affinity.nodeAffinity',
      { affinity: { nodeAffinity: { [required]: term({ matchExpressions: [controlPlane] }) } } },
    ],
    [
      'affinity.nodeAffinity',
      {
        affinity: { nodeAffinity: { [preferred]: [{ weight: 1, preference: { matchExpressions: [controlPlane] } }] } },
      },
    ],
    [
      'affinity.nodeAffinity',
      {
        affinity: {
          nodeAffinity: {
            [required]: term({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }),
          },
        },
      },
    ],
    [
      'affinity.podAntiAffinity',
      {
        affinity: {
          podAntiAffinity: { [required]: [{ topologyKey: 'zone', labelSelector: {}, namespaceSelector: {} }] },
        },
      },
    ],
    [
      'affinity.podAffinity',
      {
        affinity: {
          podAffinity: {
            [preferred]: [{ weight: 1, podAffinityTerm: { topologyKey: 'zone', namespaces: ['kube-system'] } }],
          },
        },
      },
    ],
    ['schedulerName', { schedulerName: 'mine' }],
    ['runtimeClassName', { runtimeClassName: 'unconfined' }],
    ['priorityClassName', { priorityClassName: 'system-node-critical' }],
    ['priority', { priority: 2_000_000_000 }],
  ])('by %s is refused in %j', (field, more) => {
    expect(judge(more)).toMatchObject(refused(field));
  });

  test('by what the policy names is accepted, and by what the provider told the consumer to select', () => {
    const more = {
      nodeSelector: { pool: 'guests', disk: 'ssd', 'kubernetes.io/arch': 'amd64' },
      schedulerName: 'mine',
      runtimeClassName: 'gvisor',
      priorityClassName: 'guest-low',
      affinity: { podAntiAffinity: { [required]: [{ topologyKey: 'kubernetes.io/hostname', labelSelector: {} }] } },
    };
    const rules: Partial<GuestRules> = {
      nodeLabels: ['disk', 'kubernetes.io/*'],
      schedulers: ['mine'],
      runtimeClasses: ['gvisor'],
      priorityClasses: ['guest-*'],
    };
    expect(judge(more, rules, { pool: 'guests' })).toMatchObject({ allowed: true });
    expect(judge(more, rules, { pool: 'own' })).toMatchObject(refused('nodeSelector'));
    expect(judge({ schedulerName: 'default-scheduler' })).toMatchObject({ allowed: true });
  });
});

describe('the level of pod security', () => {
  const hostile = { hostNetwork: true, containers: [{ name: 'main', securityContext: { privileged: true } }] };
  const careful = {
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      { name: 'main', securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } },
    ],
  };

  test('baseline takes ordinary pods and refuses what reaches the node', () => {
    expect(judge({})).toMatchObject({ allowed: true });
    expect(judge(hostile)).toMatchObject(refused('hostNetwork'));
  });

  test('restricted takes only pods that give up what they do not need', () => {
    const rules = { podSecurity: 'restricted' } as const;
    expect(judge(careful, rules)).toMatchObject({ allowed: true });
    expect(judge({}, rules)).toMatchObject(refused('containers[0].securityContext.allowPrivilegeEscalation'));
    const { securityContext: _, ...root } = careful;
    expect(judge(root, rules)).toMatchObject(refused('containers[0].securityContext.runAsNonRoot'));
    expect(judge({ ...careful, initContainers: [{ name: 'i' }] }, rules)).toMatchObject({ allowed: false });
  });

  test('privileged, which a policy has to name, takes all of it, and still no node by its name', () => {
    const rules = { podSecurity: 'privileged' } as const;
    expect(judge(hostile, rules)).toMatchObject({ allowed: true });
    expect(judge({ ...hostile, nodeName: 'worker' }, rules)).toMatchObject(refused('nodeName'));
  });
});

test('any JSON in the fields of a pod gets a verdict, and what is accepted can be limited and counted', () => {
  const text = fc.constantFrom('', 'a', 'default-scheduler', '1', '-1', 'node.kubernetes.io/not-ready', '*');
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      text,
      fc.constant(null),
      fc.integer(),
      fc.boolean(),
      tie('list'),
      tie('record'),
    ),
    list: fc.array(tie('value'), { maxLength: 2 }),
    record: fc.dictionary(
      fc.constantFrom(
        'name',
        'key',
        'operator',
        'requests',
        'limits',
        'cpu',
        'memory',
        'emptyDir',
        'hostPath',
        'resources',
      ),
      tie('value'),
      { maxKeys: 3 },
    ),
  }));
  const { value, list, record } = json;
  const field = fc.oneof(value, list, fc.array(record, { maxLength: 2 }), record);
  const names = fc.constantFrom(
    ...['volumes', 'tolerations', 'nodeSelector', 'affinity', 'schedulerName', 'runtimeClassName', 'resources'],
    ...['terminationGracePeriodSeconds', 'initContainers', 'overhead', 'securityContext', 'priority'],
  );
  const container = fc.record({ name: fc.constant('app'), resources: field }, { requiredKeys: ['name'] });
  const pod = fc
    .tuple(fc.array(container, { minLength: 1, maxLength: 2 }), fc.dictionary(names, field, { maxKeys: 2 }))
    .map(([containers, fields]): object => ({ containers, ...fields }));
  fc.assert(
    fc.property(pod, (spec) => {
      if (!validateGuestPod(spec, {}, { rules: safeRules }).allowed) return;
      const given = spec as unknown as PodSpec;
      limitations(given, {}, safeRules);
      for (const enforcement of ['None', 'Soft', 'Hard'] as const) {
        const held = guestSpec(given, safeRules, enforcement);
        podUsage(held);
        classProblem(given, held, enforcement);
        limitRangeProblem(given, { limits: [{ type: 'Container', max: { cpu: '1' } }] });
        expect(qosClassOf(withClassKept(given, held))).toBe(qosClassOf(given));
        expect(held.volumes?.every((volume) => !('hostPath' in volume) || volume.hostPath == null) ?? true).toBe(true);
      }
    }),
    { numRuns: 5_000, examples: [[{ containers: [{ name: 'app' }], resources: { limits: null } }]] },
  );
});
