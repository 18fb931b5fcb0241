/** Faults of what is installed in a cluster. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { clusterIdConfigMap, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { container } from '../../whole-clusters/workloads.ts';
import { both, changed, doing, type Fault, having, insist, must, without } from '../fault.ts';

const inLiqo = ['-n', systemNamespace] as const;
const agent = ['deployment', 'isthmus-agent', ...inLiqo] as const;
const agentPods = ['-l', 'app.kubernetes.io/name=controller-manager', ...inLiqo] as const;
const containerPath = '/spec/template/spec/containers/0';

/** The first pods of a Deployment that is changed and put back are replaced twice: everything goes on once that is over. */
const rolledOut =
  (cluster: 'rome' | 'milan', inject: Fault['inject']): Fault['inject'] =>
  async (ground) => {
    const { undo } = await inject(ground);
    return {
      async undo() {
        await undo();
        await must(ground, cluster, 'rollout', 'status', ...agent, '--timeout=120s').catch(() => undefined);
      },
    };
  };

const restrictedQuota = {
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'drill', namespace: systemNamespace },
  spec: { hard: { pods: '0' } },
};

export const installationFaults: readonly Fault[] = [
  {
    what: 'agent scaled to 0 at the consumer',
    says: 'agent_stopped',
    inject: changed('rome', agent, { spec: { replicas: 0 } }, { spec: { replicas: 1 } }),
  },
  {
    what: 'agent scaled to 0 at the provider',
    says: 'agent_stopped',
    inject: changed('milan', agent, { spec: { replicas: 0 } }, { spec: { replicas: 1 } }),
  },
  { what: 'Deployment of the agent deleted', says: 'agent_missing', inject: without('milan', ...agent) },
  {
    what: 'image of the agent missing',
    says: 'agent_image',
    inject: rolledOut('milan', async (ground) => {
      const image = await must(
        ground,
        'milan',
        'get',
        ...agent,
        '-o',
        'jsonpath={.spec.template.spec.containers[0].image}',
      );
      const setTo = (value: string) => [{ op: 'replace', path: `${containerPath}/image`, value }];
      return changed('milan', agent, setTo('isthmus.test/agent:none'), setTo(image), 'json')(ground);
    }),
  },
  {
    what: 'wrong setting of the agent: it ends at once',
    says: 'agent_crashes',
    inject: rolledOut('rome', async (ground) => {
      const object = JSON.parse(await must(ground, 'rome', 'get', ...agent, '-o', 'json'));
      const env: { name: string; value?: string }[] = object.spec.template.spec.containers[0].env;
      const at = env.findIndex(({ name }) => name === 'ISTHMUS_API_SERVER_URL');
      const setTo = (value: string | undefined) => [{ op: 'replace', path: `${containerPath}/env/${at}/value`, value }];
      return changed('rome', agent, setTo('no-url'), setTo(env[at]?.value), 'json')(ground);
    }),
  },
  {
    what: 'no node for the agent: nodeSelector',
    says: 'agent_unscheduled',
    inject: rolledOut(
      'rome',
      both(
        changed(
          'rome',
          agent,
          { spec: { template: { spec: { nodeSelector: { drill: 'none' } } } } },
          { spec: { template: { spec: { nodeSelector: { drill: null } } } } },
        ),
      ),
    ),
  },
  {
    what: 'quota in the namespace of the agent, whose pod is lost',
    says: 'agent_refused',
    inject: both(
      having('milan', restrictedQuota),
      // Before it has counted, it refuses nothing.
      doing('milan', 'wait', 'resourcequota/drill', ...inLiqo, '--for=jsonpath={.status.hard.pods}=0', '--timeout=30s'),
      doing('milan', 'delete', 'pod', ...agentPods, '--wait=false'),
    ),
  },
  {
    what: 'pod security of the namespace of the agent, whose pod is lost',
    says: 'agent_refused',
    inject: both(
      changed(
        'rome',
        ['namespace', systemNamespace],
        { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
        { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } } },
      ),
      doing('rome', 'delete', 'pod', ...agentPods, '--wait=false'),
    ),
  },
  {
    what: 'ClusterRoleBinding of the agent deleted',
    says: 'rights_removed',
    inject: without('milan', 'clusterrolebinding', 'isthmus-agent'),
  },
  {
    what: 'a rule of the ClusterRole of the agent deleted',
    says: 'rights_removed',
    inject: async (ground) => {
      const role = JSON.parse(await must(ground, 'rome', 'get', 'clusterrole', 'isthmus-agent', '-o', 'json'));
      return changed(
        'rome',
        ['clusterrole', 'isthmus-agent'],
        { rules: role.rules.slice(1) },
        { rules: role.rules },
      )(ground);
    },
  },
  {
    what: 'Role for Leases of the agent deleted',
    says: 'rights_removed',
    inject: without('rome', 'role', 'isthmus-agent-leases', ...inLiqo),
  },
  {
    what: 'CustomResourceDefinition of another version',
    says: 'crds_differ',
    inject: async (ground) => {
      const name = 'vkoptionstemplates.offloading.liqo.io';
      const { spec } = JSON.parse(await must(ground, 'rome', 'get', 'crd', name, '-o', 'json'));
      const older = structuredClone(spec.versions);
      const properties = older[0].schema.openAPIV3Schema.properties.spec.properties;
      delete properties[Object.keys(properties).at(-1) ?? ''];
      return changed(
        'rome',
        ['crd', name],
        { spec: { versions: older } },
        { spec: { versions: spec.versions } },
      )(ground);
    },
  },
  {
    what: 'CustomResourceDefinition missing',
    says: 'crds_differ',
    inject: without('milan', 'crd', 'vkoptionstemplates.offloading.liqo.io'),
  },
  {
    what: 'Liqo installed beside Isthmus',
    says: 'second_agent',
    inject: having('milan', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name: 'liqo-controller-manager',
        namespace: systemNamespace,
        labels: { 'app.kubernetes.io/name': 'controller-manager' },
      },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'drill' } },
        template: { metadata: { labels: { app: 'drill' } }, spec: { containers: [container(['serve'])] } },
      },
    }),
  },
  {
    what: 'a second agent in another namespace',
    says: 'second_agent',
    inject: async (ground) => {
      const { spec, metadata } = JSON.parse(await must(ground, 'rome', 'get', ...agent, '-o', 'json'));
      return both(
        having('rome', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'drill-second' } }),
        having('rome', {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'isthmus-agent', namespace: 'drill-second', labels: metadata.labels },
          spec: { ...spec, replicas: 0 },
        }),
      )(ground);
    },
  },
  {
    what: 'ConfigMap with the cluster ID deleted',
    says: 'not_installed',
    inject: without('milan', 'configmap', clusterIdConfigMap, ...inLiqo),
  },
  {
    what: 'webhooks unreachable: their Service leads nowhere',
    says: 'webhook_unreachable',
    inject: async (ground) => {
      const service = ['service', 'isthmus-webhook', ...inLiqo];
      const { spec } = JSON.parse(await must(ground, 'rome', 'get', ...service, '-o', 'json'));
      return changed(
        'rome',
        service,
        [{ op: 'replace', path: '/spec/selector', value: { app: 'nothing' } }],
        [{ op: 'replace', path: '/spec/selector', value: spec.selector }],
        'json',
      )(ground);
    },
  },
];

/** Kubeconfigs of a ServiceAccount that may nothing, before and after it is gone. */
async function accountKubeconfig(ground: Parameters<Fault['inject']>[0], name: string): Promise<string> {
  await must(ground, 'milan', 'create', 'serviceaccount', name, '-n', 'default');
  const token = (await must(ground, 'milan', 'create', 'token', name, '-n', 'default')).trim();
  const config = JSON.parse(readFileSync(ground.kubeconfig('milan'), 'utf8'));
  const file = path.join(ground.dir, `${name}.kubeconfig`);
  writeFileSync(file, JSON.stringify({ ...config, users: [{ name: config.users[0].name, user: { token } }] }));
  return file;
}

export const askingFaults: readonly Fault[] = [
  {
    what: 'kubeconfig without rights',
    says: 'looking_forbidden',
    async inject(ground) {
      const milan = await accountKubeconfig(ground, 'drill-nobody');
      return {
        asking: { kubeconfigs: { milan } },
        undo: () =>
          insist(ground, 'milan', 'delete', 'serviceaccount', 'drill-nobody', '-n', 'default', '--ignore-not-found'),
      };
    },
  },
  {
    what: 'token of the kubeconfig revoked',
    says: 'kubeconfig_refused',
    async inject(ground) {
      const milan = await accountKubeconfig(ground, 'drill-gone');
      await must(ground, 'milan', 'delete', 'serviceaccount', 'drill-gone', '-n', 'default');
      return { asking: { kubeconfigs: { milan } }, undo: async () => undefined };
    },
  },
  {
    what: 'API server moved: the kubeconfig has its old address',
    says: 'cluster_silent',
    async inject(ground) {
      const rome = path.join(ground.dir, 'moved.kubeconfig');
      const text = readFileSync(ground.kubeconfig('rome'), 'utf8');
      writeFileSync(rome, text.replace(/:6443/g, ':6444'));
      return { asking: { kubeconfigs: { rome } }, undo: async () => undefined };
    },
  },
  {
    what: 'wrong clock: the machine that asks is 10 minutes ahead',
    says: 'clock_wrong',
    inject: async () => ({ asking: { clockAheadMs: 600_000 }, undo: async () => undefined }),
  },
  {
    what: 'API server of the provider dead',
    says: 'cluster_silent',
    async inject({ stage }) {
      const milan = stage.world.cluster('milan');
      await milan.stopApiServer();
      return { undo: () => milan.startApiServer() };
    },
  },
];
