/** What offloaded pods can rely on, and what administrators do with them, on the playground of the examples: milan and naples are peered with rome. */
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { installMetricsServer } from '#test/harness/metrics-server.ts';
import type { ProductClusters } from '#test/harness/product-clusters.ts';
import { type Ended, must, run } from '#test/harness/program.ts';
import { container, deployment, pod } from '../../whole-clusters/workloads.ts';

type Name = 'rome' | 'milan' | 'naples';
const namespace = 'life';
const patience = { withinMs: 60_000, everyMs: 100 } as const;
const account = '/var/run/secrets/kubernetes.io/serviceaccount';

class Hands {
  readonly world: ProductClusters;
  readonly #apis = new Map<Name, KubeApi>();

  constructor(clusters: ProductClusters) {
    this.world = clusters;
  }

  async api(name: Name): Promise<KubeApi> {
    const known = this.#apis.get(name);
    if (known) return known;
    const kubeconfig = await readFile(this.world.cluster(name).kubeconfigPath, 'utf8');
    const api = createKubeApi(await connectKubeconfig(kubeconfig), { clock: systemClock, log: silentLog });
    this.#apis.set(name, api);
    return api;
  }

  kubectl(...args: string[]): Promise<string> {
    return this.world.cluster('rome').kubectl('-n', namespace, ...args);
  }

  async apply(...items: readonly unknown[]): Promise<void> {
    const kubectl = [`--kubeconfig=${this.world.cluster('rome').kubeconfigPath}`, 'apply', '-f', '-'];
    const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    await must(`${this.world.bed.dir}/kubectl`, kubectl, { input });
  }

  isthmus(name: Name, ...args: string[]): Promise<Ended> {
    return this.world.isthmus(...args, '--kubeconfig', this.world.cluster(name).kubeconfigPath);
  }

  async podThat(name: string, what: string, holds: (found: Pod) => boolean): Promise<Pod> {
    const api = await this.api('rome');
    return eventually(
      `pod ${name} ${what}`,
      async () => {
        const found = await api.get(pods, { namespace, name });
        if (found && holds(found)) return found;
        throw new Error(JSON.stringify(found?.status ?? 'absent'));
      },
      patience,
    );
  }
}

const isReady = (found: Pod): boolean =>
  found.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
const core = (kind: string, name: string, more: object): KubeObject =>
  ({ apiVersion: 'v1', kind, metadata: { namespace, name }, ...more }) as KubeObject;
const onNode = (name: string) => ({ nodeSelector: { 'kubernetes.io/hostname': name } });

export function life(clusters: () => ProductClusters): void {
  let hands: Hands;

  describe('in an offloaded namespace', () => {
    beforeAll(async () => {
      hands = new Hands(clusters());
      const { cluster, stateDir } = clusters();
      await installMetricsServer([cluster('rome'), cluster('milan')], stateDir);
      await hands.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
      const ended = await hands.isthmus('rome', 'offload', 'namespace', namespace, '--strategy', 'Remote');
      expect(ended.code, ended.stderr).toBe(0);
      const volumes = [
        { name: 'settings', configMap: { name: 'settings' } },
        { name: 'keys', secret: { secretName: 'keys' } },
      ];
      const volumeMounts = [
        { name: 'settings', mountPath: '/settings' },
        { name: 'keys', mountPath: '/keys' },
      ];
      const env = [{ name: 'GREETING', valueFrom: { configMapKeyRef: { name: 'settings', key: 'greeting' } } }];
      await hands.apply(
        core('ConfigMap', 'settings', { data: { greeting: 'ciao' } }),
        core('Secret', 'keys', { stringData: { door: 'sesame' } }),
        core('Service', 'web', { spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] } }),
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'Role',
          metadata: { namespace, name: 'reader' },
          rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }],
        },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'RoleBinding',
          metadata: { namespace, name: 'reader' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
          subjects: [{ kind: 'ServiceAccount', namespace, name: 'default' }],
        },
        pod(namespace, 'web', [container(['serve'], { volumeMounts, env })], {
          labels: { app: 'web' },
          volumes,
          ...onNode('milan'),
        }),
        pod(namespace, 'other', [container(['sleep'])], onNode('milan')),
        pod(namespace, 'busy', [container(['burn', '--cpu', '0.3', '--memory', '20'])], onNode('milan')),
        {
          apiVersion: 'batch/v1',
          kind: 'Job',
          metadata: { namespace, name: 'chore' },
          spec: {
            template: {
              spec: {
                restartPolicy: 'Never',
                terminationGracePeriodSeconds: 2,
                initContainers: [
                  container(['echo', 'prepared'], { name: 'prepare' }),
                  container(['serve'], { name: 'sidecar', restartPolicy: 'Always' }),
                ],
                containers: [container(['get', 'http://127.0.0.1:8080/healthz'])],
              },
            },
          },
        },
      );
      await hands.podThat('web', 'is ready', isReady);
      await hands.podThat('other', 'is ready', isReady);
      // A machine that has never built the metrics server builds it here.
    }, 900_000);

    test('B022 B023 a pod reads its ConfigMap and Secret, and finds Services by name', async () => {
      expect(await hands.kubectl('exec', 'web', '--', 'cat', '/settings/greeting', '/keys/door')).toBe('ciaosesame');
      expect(await hands.kubectl('exec', 'web', '--', 'env')).toMatch(/^GREETING=ciao$/m);
      const answer = () => hands.kubectl('exec', 'other', '--', 'get', 'http://web/');
      expect(await eventually('the Service', answer, patience)).toBe('web\n');
    });

    test('B027 B028 its token is good at the API server of its own cluster, for what its account may do there', async () => {
      const environment = await hands.kubectl('exec', 'web', '--', 'env');
      const of = (name: string) => new RegExp(`^KUBERNETES_SERVICE_${name}=(.*)$`, 'm').exec(environment)?.[1];
      expect(of('HOST')).toBe('kubernetes.default');
      const ask = (what: string) =>
        hands.kubectl(
          ...['exec', 'web', '--', 'get', '--ca', `${account}/ca.crt`, '--token', `${account}/token`],
          `https://${of('HOST')}:${of('PORT')}/api/v1/namespaces/${namespace}/${what}`,
        );
      const answer = await eventually('the API server', () => ask('configmaps/settings'), patience);
      expect(JSON.parse(answer)).toMatchObject({ kind: 'ConfigMap', data: { greeting: 'ciao' } });
      await expect(ask('secrets/keys')).rejects.toThrow(/403 Forbidden/);
    });

    test('B029 what the provider says about a pod is told at home', async () => {
      const reported = await eventually(
        'an event of the kubelet next door',
        async () => {
          const events = await hands.kubectl('get', 'events', '-o', 'json', '--field-selector=involvedObject.name=web');
          const { items } = JSON.parse(events) as { items: { reason: string; source: { component: string } }[] };
          return items.find(({ source, reason }) => source.component === 'kubelet (remote)' && reason === 'Started');
        },
        patience,
      );
      expect(reported).toBeDefined();
    });

    test('a Job with an init container and a sidecar completes, and its sidecar ends with it', async () => {
      await hands.kubectl('wait', '--for=condition=Complete', 'job/chore', '--timeout=60s');
      const { items } = JSON.parse(await hands.kubectl('get', 'pods', '-l', 'job-name=chore', '-o', 'json')) as {
        items: Pod[];
      };
      expect(items.map(({ status }) => status?.phase)).toEqual(['Succeeded']);
      const [prepare, sidecar] = items[0]?.status?.initContainerStatuses ?? [];
      expect(prepare?.state?.terminated).toMatchObject({ exitCode: 0 });
      expect(sidecar?.state?.terminated).toBeDefined();
      expect(items[0]?.spec?.nodeName).toMatch(/^(milan|naples)$/);
    });

    test('B018 a pod that is deleted has its own period to end, on both sides', async () => {
      const lifecycle = { preStop: { sleep: { seconds: 3 } } };
      await hands.apply(
        pod(namespace, 'careful', [container(['serve'], { lifecycle })], {
          terminationGracePeriodSeconds: 20,
          ...onNode('milan'),
        }),
      );
      await hands.podThat('careful', 'is ready', isReady);
      const startedAt = Date.now();
      await hands.kubectl('delete', 'pod', 'careful', '--wait=false');
      const there = await hands.api('milan');
      const twin = await eventually(
        'the twin is told',
        async () => {
          const found = await there.get(pods, { namespace: `${namespace}-rome`, name: 'careful' });
          return found?.metadata.deletionTimestamp === undefined ? undefined : found;
        },
        patience,
      );
      expect(twin.metadata.deletionGracePeriodSeconds).toBe(20);
      expect(await (await hands.api('rome')).get(pods, { namespace, name: 'careful' })).toBeDefined();
      await hands.kubectl('wait', '--for=delete', 'pod/careful', '--timeout=60s');
      const tookMs = Date.now() - startedAt;
      expect(tookMs).toBeGreaterThan(3_000);
      expect(await there.get(pods, { namespace: `${namespace}-rome`, name: 'careful' })).toBeUndefined();
    });

    test('kubectl top shows virtual nodes and offloaded pods through a real metrics server', async () => {
      const top = (...what: string[]) =>
        eventually(`kubectl top ${what.join(' ')}`, () => hands.kubectl('top', ...what, '--no-headers'), {
          withinMs: 90_000,
          everyMs: 1_000,
        });
      // It asks for 300 thousandths of a core, and gets a part even of a machine that is shared.
      const [, cpu, memory] = /^busy +(\d+)m +(\d+)Mi/m.exec(await top('pod', 'busy')) ?? [];
      expect(Number(cpu)).toBeGreaterThan(50);
      expect(Number(memory)).toBeGreaterThanOrEqual(15);
      expect(await top('node', 'milan')).toMatch(/^milan +\d+m +\d+% +\d+Mi +\d+%/);
      await hands.kubectl('delete', 'pod', 'busy', '--wait=false');
    });

    test('a slice that is cordoned takes no new pods and keeps those that run', async () => {
      const taints = async () =>
        (await (await hands.api('rome')).get(nodes, { name: 'naples' }))?.spec?.taints?.map(({ key }) => key) ?? [];
      const cordoned = await hands.isthmus('naples', 'cordon', 'slice', 'naples');
      expect(cordoned.code, cordoned.stderr).toBe(0);
      await eventually('the taint', async () => (await taints()).includes('isthmus.dev/cordoned'), patience);
      await hands.apply(pod(namespace, 'late', [container(['serve'])], onNode('naples')));
      await hands.podThat('late', 'is told why it waits', ({ status }) =>
        /untolerated taint/.test(status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? ''),
      );
      const open = await hands.isthmus('naples', 'uncordon', 'slice', 'naples');
      expect(open.code, open.stderr).toBe(0);
      await hands.podThat('late', 'is ready', isReady);
    });

    test('a slice that is drained is emptied within its disruption budgets, goes, and comes back', async () => {
      await hands.apply(deployment(namespace, 'spread', 2, [container(['serve'])]), {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { namespace, name: 'spread' },
        spec: { minAvailable: 1, selector: { matchLabels: { app: 'spread' } } },
      });
      await hands.kubectl('wait', '--for=condition=Available', 'deployment/spread', '--timeout=60s');
      const drained = await hands.isthmus('naples', 'drain', 'slice', 'naples', '--timeout', '90s');
      expect(drained.code, drained.stdout + drained.stderr).toBe(0);
      const here = await hands.api('rome');
      expect(await here.get(nodes, { name: 'naples' })).toBeUndefined();
      await hands.kubectl('wait', '--for=condition=Available', 'deployment/spread', '--timeout=60s');
      const left = await (await hands.api('naples')).list(pods, { namespace: `${namespace}-rome` });
      expect(left).toEqual([]);
      const back = await hands.isthmus('naples', 'uncordon', 'slice', 'naples');
      expect(back.code, back.stderr).toBe(0);
      await eventually(
        'the node is back',
        async () => {
          const node = await here.get(nodes, { name: 'naples' });
          return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
        },
        patience,
      );
    });

    test('unoffloading ends it', async () => {
      const ended = await hands.isthmus('rome', 'unoffload', 'namespace', namespace);
      expect(ended.code, ended.stderr).toBe(0);
      await run(`${clusters().bed.dir}/kubectl`, [
        `--kubeconfig=${clusters().cluster('rome').kubeconfigPath}`,
        ...['delete', 'namespace', namespace, '--timeout=60s'],
      ]);
      expect(await (await hands.api('milan')).list(pods, { namespace: `${namespace}-rome` })).toEqual([]);
    });
  });
}
