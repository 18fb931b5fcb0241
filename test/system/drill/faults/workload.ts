/** Faults of offloaded namespaces and of pods in them. */
import { container, deployment } from '../../whole-clusters/workloads.ts';
import { both, changed, type Fault, having, insist, must } from '../fault.ts';

const ns = 'shop';
const drill = (replicas: number, containers: Parameters<typeof deployment>[3]): object =>
  deployment(ns, 'drill', replicas, containers);

const terms = (key: string) => ({
  nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: ['none'] }] }],
});

export const workloadFaults: readonly Fault[] = [
  {
    what: 'image of an offloaded pod missing',
    says: 'pod_image',
    inject: having('rome', drill(1, [container(['serve'], { image: 'isthmus.test/none:1' })])),
  },
  {
    what: 'ConfigMap of an offloaded pod missing',
    says: 'pod_config',
    inject: having('rome', drill(1, [container(['serve'], { envFrom: [{ configMapRef: { name: 'drill-none' } }] })])),
  },
  {
    what: 'offloaded pod ends again and again',
    says: 'pod_crashes',
    inject: having('rome', drill(1, [container(['no-such-command'])])),
  },
  {
    what: 'pods want more than was granted',
    says: 'quota_used_up',
    inject: having('rome', drill(1, [container(['serve'], { resources: { requests: { cpu: '3', memory: '8Mi' } } })])),
  },
  {
    what: 'provider refuses a privileged pod (pod security, guest rules)',
    says: 'pod_refused',
    inject: having('rome', drill(1, [container(['serve'], { securityContext: { privileged: true } })])),
  },
  {
    what: 'namespace not offloaded: pods ask for the virtual node',
    says: 'namespace_not_offloaded',
    inject: both(
      having('rome', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'drill-local' } }),
      having('rome', {
        ...deployment('drill-local', 'web', 1, [container(['serve'])]),
        spec: {
          replicas: 1,
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { nodeSelector: { 'liqo.io/type': 'virtual-node' }, containers: [container(['serve'])] },
          },
        },
      }),
    ),
  },
  {
    what: 'selector of an offloaded namespace matches nothing',
    says: 'selector_matches_nothing',
    async inject(ground) {
      const object = {
        apiVersion: 'offloading.liqo.io/v1beta1',
        kind: 'NamespaceOffloading',
        metadata: { name: 'offloading', namespace: 'drill-none' },
      };
      return both(
        having('rome', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'drill-none' } }),
        having('rome', { ...object, spec: { podOffloadingStrategy: 'Remote', clusterSelector: terms('drill') } }),
      )(ground);
    },
  },
  {
    what: 'taint on the virtual node',
    says: 'node_closed',
    async inject(ground) {
      await must(ground, 'rome', 'taint', 'node', 'milan', 'drill=yes:NoSchedule');
      return { undo: () => insist(ground, 'rome', 'taint', 'node', 'milan', 'drill-') };
    },
  },
  {
    what: 'virtual node cordoned',
    says: 'node_closed',
    async inject(ground) {
      await must(ground, 'rome', 'cordon', 'milan');
      return { undo: () => insist(ground, 'rome', 'uncordon', 'milan') };
    },
  },
  {
    what: 'tenant cordoned by the provider',
    says: 'provider_cordoned',
    async inject({ stage, kubeconfig }) {
      const flags = ['--kubeconfig', kubeconfig('milan')];
      await stage.world.mustIsthmus('cordon', 'tenant', 'rome', ...flags);
      return { undo: async () => void (await stage.world.mustIsthmus('uncordon', 'tenant', 'rome', ...flags)) };
    },
  },
  {
    what: 'taint on the node of the provider: nothing new runs there',
    says: 'no_open_node',
    inject: both(
      async (ground) => {
        await must(ground, 'milan', 'taint', 'node', 'milan-1', 'drill=yes:NoSchedule');
        return { undo: () => insist(ground, 'milan', 'taint', 'node', 'milan-1', 'drill-') };
      },
      having('rome', drill(1, [container(['serve'])])),
    ),
  },
  {
    what: 'DNS of the provider scaled to 0',
    says: 'dns_down',
    inject: changed(
      'milan',
      ['deployment', 'coredns', '-n', 'kube-system'],
      { spec: { replicas: 0 } },
      { spec: { replicas: 1 } },
    ),
  },
  {
    what: 'pods made before the namespace was offloaded',
    says: 'pod_too_old',
    async inject(ground) {
      const late = 'drill-late';
      const made = await both(
        having('rome', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: late } }),
        having('rome', {
          ...deployment(late, 'web', 1, []),
          spec: {
            replicas: 1,
            selector: { matchLabels: { app: 'web' } },
            template: {
              metadata: { labels: { app: 'web' } },
              spec: { nodeSelector: { 'liqo.io/type': 'virtual-node' }, containers: [container(['serve'])] },
            },
          },
        }),
      )(ground);
      await must(ground, 'rome', 'wait', 'pod', '-l', 'app=web', '-n', late, '--for=create', '--timeout=30s');
      await ground.stage.mustOffload(late, '--pod-offloading-strategy', 'Remote');
      return made;
    },
  },
];
