/** What an installation does differently on the distributions that need it: by their rules, on the objects of a cluster of each. */
import { spawn } from 'node:child_process';
import net from 'node:net';
import { describe, expect, test } from 'vitest';
import { knownClusters } from '#cli/platform/known-clusters.ts';
import { findProfile, type ProfileName, profileNames } from '#cli/platform/profiles.ts';
import type { ClusterRole, ClusterRoleBinding, DaemonSet, Deployment } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { eventually } from '#test/harness/eventually.ts';
import { typeOf } from './apply.ts';
import { agentManifests, type InstallOptions } from './manifests.ts';

const options: InstallOptions = {
  clusterId: 'rome',
  image: 'registry.example.com/agent:1',
  apiServerUrl: 'https://rome.example.com',
  replicas: 2,
  network: {
    ranges: {
      podCidrs: ['10.244.0.0/16'],
      serviceCidr: '10.96.0.0/12',
      externalCidr: '10.71.0.0/16',
      internalCidr: '10.80.0.0/16',
      reservedSubnets: [],
      fixed: { external: false, internal: false },
    },
  },
};
const usual = agentManifests(options);
const on = (name: ProfileName, more: Partial<InstallOptions> = {}): KubeObject[] => {
  const { settings } = findProfile(knownClusters[name]).profile;
  return agentManifests({ ...options, ...(settings && { platform: settings }), ...more });
};
const keyOf = ({ kind, metadata }: KubeObject): string => `${kind}/${metadata.name}`;
const find = <T extends KubeObject>(all: readonly KubeObject[], key: string): T =>
  all.find((object) => keyOf(object) === key) as T;
const added = (all: readonly KubeObject[]): string[] => {
  const before = new Set(usual.map(keyOf));
  return all.map(keyOf).filter((key) => !before.has(key));
};

interface GatewayTemplate extends KubeObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly service?: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };
        readonly deployment: NonNullable<Deployment['spec']> & Pick<Deployment, 'spec'>;
      };
    };
  };
}

test.each(profileNames.map((name) => ({ name })))(
  'everything runs on Linux nodes only on $name, and every object can be applied',
  ({ name }) => {
    const all = on(name);
    for (const object of all) expect(typeOf(object).kind).toBe(object.kind);
    const linux = { 'kubernetes.io/os': 'linux' };
    expect(find<Deployment>(all, 'Deployment/isthmus-agent').spec?.template.spec?.nodeSelector).toEqual(linux);
    expect(find<DaemonSet>(all, 'DaemonSet/isthmus-fabric').spec?.template.spec?.nodeSelector).toEqual(linux);
    for (const key of ['WgGatewayServerTemplate/wireguard-server', 'WgGatewayClientTemplate/wireguard-client'])
      expect(find<GatewayTemplate>(all, key).spec.template.spec.deployment.spec?.template.spec?.nodeSelector).toEqual(
        linux,
      );
  },
);

test.each(['kubeadm', 'kind', 'minikube', 'k3s', 'rke2', 'k0s', 'microk8s', 'talos', 'generic'] as const)(
  '%s needs no other object than any cluster',
  (name) => expect(on(name)).toEqual(usual),
);

test('on AKS virtual nodes say that they are none of Azure, which would delete them', () => {
  const all = on('aks');
  expect(added(all)).toEqual(['VkOptionsTemplate/virtual-kubelet-default']);
  expect(find(all, 'VkOptionsTemplate/virtual-kubelet-default')).toMatchObject({
    metadata: { namespace: 'liqo' },
    spec: {
      createNode: true,
      disableNetworkCheck: false,
      nodeExtraLabels: { 'kubernetes.azure.com/managed': 'false' },
    },
  });
});

test('on GKE webhooks are where control planes of private clusters reach pods, unless they are in the network of a node', () => {
  const container = (all: KubeObject[]) =>
    find<Deployment>(all, 'Deployment/isthmus-agent').spec?.template.spec?.containers[0];
  const alone = container(on('gke'));
  expect(alone?.ports).toContainEqual({ name: 'webhook', containerPort: 10_250, protocol: 'TCP' });
  expect(alone?.env).toContainEqual({ name: 'ISTHMUS_WEBHOOK_PORT', value: '10250' });
  const shared = container(on('gke', { nodeProcess: 'shared', replicas: 1 }));
  expect(shared?.ports?.map(({ containerPort }) => containerPort)).not.toContain(10_250);
});

describe('on EKS', () => {
  const all = on('eks');
  const server = find<GatewayTemplate>(all, 'WgGatewayServerTemplate/wireguard-server').spec.template.spec;
  const health = server.deployment.spec?.template.spec?.containers.find(({ name }) => name === 'health');

  test('Services of gateways ask for a load balancer that peers reach, which checks a TCP port', () => {
    const aws = 'service.beta.kubernetes.io/aws-load-balancer';
    expect(server.service?.metadata.annotations).toEqual({
      [`${aws}-type`]: 'external',
      [`${aws}-scheme`]: 'internet-facing',
      [`${aws}-nlb-target-type`]: 'ip',
      [`${aws}-healthcheck-protocol`]: 'TCP',
      [`${aws}-healthcheck-port`]: '8083',
    });
    expect(health?.ports).toEqual([{ name: 'health', containerPort: 8083, protocol: 'TCP' }]);
    expect(findProfile(knownClusters.eks).profile.settings?.fullMasquerade).toBe(true);
  });

  test('the program at that port accepts connections', async () => {
    const port = await new Promise<number>((resolve) => {
      const probe = net.createServer().listen(0, '127.0.0.1', () => {
        const { port: free } = probe.address() as net.AddressInfo;
        probe.close(() => resolve(free));
      });
    });
    const [, ...args] = health?.command ?? [];
    const child = spawn(
      process.execPath,
      args.map((text) => text.replace('8083', `${port}, '127.0.0.1'`)),
      { stdio: 'ignore' },
    );
    try {
      const connects = () =>
        new Promise<boolean>((resolve) => {
          const socket = net.connect(port, '127.0.0.1', () => resolve(true));
          socket.on('error', () => resolve(false));
          socket.on('connect', () => socket.destroy());
        });
      await eventually('a connection', connects, { withinMs: 30_000 });
      expect(await connects()).toBe(true);
    } finally {
      child.kill('SIGKILL');
    }
  }, 40_000);
});

describe('on OpenShift', () => {
  test('node processes may be privileged, and gateways what they are written with', () => {
    const all = on('openshift');
    expect(added(all)).toEqual([
      'SecurityContextConstraints/isthmus-gateway',
      'ClusterRole/isthmus-gateway',
      'ClusterRole/isthmus-fabric-scc',
      'ClusterRoleBinding/isthmus-fabric-scc',
    ]);
    const accounts = (list: KubeObject[]) =>
      find<ClusterRoleBinding>(list, 'ClusterRoleBinding/isthmus-fabric-scc').subjects?.map(({ name }) => name);
    expect(accounts(all)).toEqual(['isthmus-fabric']);
    expect(accounts(on('openshift', { nodeProcess: 'shared', replicas: 1 }))).toEqual([
      'isthmus-fabric',
      'isthmus-agent',
    ]);
  });

  test('the agent gives gateways their role in tenant namespaces, and may give no other for it', () => {
    const all = on('openshift');
    const agent = find<Deployment>(all, 'Deployment/isthmus-agent').spec?.template.spec?.containers[0];
    expect(agent?.env).toContainEqual({ name: 'ISTHMUS_GATEWAY_ROLE', value: 'isthmus-gateway' });
    const bound = (list: readonly KubeObject[]) =>
      find<ClusterRole>(list, 'ClusterRole/isthmus-agent').rules?.find(({ verbs }) => verbs.includes('bind'))
        ?.resourceNames ?? [];
    expect(bound(all).filter((name) => !bound(usual).includes(name))).toEqual(['isthmus-gateway']);
  });

  test('without a network nothing is asked for', () => {
    const { network: _, ...without } = options;
    const { settings } = findProfile(knownClusters.openshift).profile;
    expect(
      agentManifests({ ...without, ...(settings && { platform: settings }) }).map(({ kind }) => kind),
    ).not.toContain('SecurityContextConstraints');
  });
});
