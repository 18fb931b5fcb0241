import { describe, expect, test } from 'vitest';
import type { ClusterRole, ClusterRoleBinding, DaemonSet, Deployment } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { PeeringPolicySpec } from '#shared/schema/isthmus/peering-policy.ts';
import { GatewayTemplateSpec } from '#shared/schema/liqo/rendered-gateway.ts';
import { typeOf } from './apply.ts';
import { agentManifests, type InstallOptions, type NetworkInstallOptions } from './manifests.ts';

const options: InstallOptions = {
  clusterId: 'rome',
  image: 'isthmus.dev/agent:1',
  apiServerUrl: 'https://192.0.2.1:6443',
  replicas: 2,
  network: {
    ranges: {
      podCidrs: ['10.200.0.0/16'],
      serviceCidr: '10.96.0.0/12',
      externalCidr: '10.70.0.0/16',
      internalCidr: '10.80.0.0/16',
      reservedSubnets: ['192.168.0.0/16'],
      fixed: { external: false, internal: false },
    },
    gatewayReplicas: 2,
    fullMasquerade: true,
  },
};
const find = <T extends KubeObject>(kind: string, name: string, from = agentManifests(options)): T => {
  const found = from.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found as T;
};
const pod = () => find<Deployment>('Deployment', 'isthmus-agent').spec?.template.spec;

describe('the manifests of the agent', () => {
  test('have a handle for each kind and name nothing twice', () => {
    const keys = agentManifests(options).map(
      (object) => `${typeOf(object).plural}/${object.metadata.namespace ?? ''}/${object.metadata.name}`,
    );
    expect(new Set(keys).size).toBe(keys.length);
  });

  test('put the namespace first and the Deployment last', () => {
    const kinds = agentManifests(options).map(({ kind }) => kind);
    expect([kinds[0], kinds.at(-1)]).toEqual(['Namespace', 'Deployment']);
  });

  test('are found by liqoctl: one Deployment, its labels, its container', () => {
    const agent = find<Deployment>('Deployment', 'isthmus-agent');
    expect(agent.metadata.labels).toMatchObject({
      'app.kubernetes.io/name': 'controller-manager',
      'app.kubernetes.io/component': 'controller-manager',
    });
    expect(pod()?.containers.map(({ name }) => name)).toEqual(['controller-manager']);
    expect(find('ConfigMap', 'liqo-clusterid-configmap').metadata.labels).toMatchObject({
      'app.kubernetes.io/name': 'clusterid-configmap',
    });
  });

  test('tell liqoctl and the agent the same labels of the cluster', () => {
    const labels = { tier: 'gold', region: 'eu' };
    const [agent] = agentManifests({ ...options, labels }).slice(-1) as [Deployment];
    const [container] = agent.spec?.template.spec?.containers ?? [];
    expect(container?.args).toContain('--cluster-labels=region=eu,tier=gold');
    expect(container?.env).toContainEqual({ name: 'ISTHMUS_CLUSTER_LABELS', value: 'region=eu,tier=gold' });
  });

  test('make a class for claims, and rights over claims in its namespace alone, unless there is to be no storage', () => {
    const storage = { className: 'shared', capacityClassName: 'roomy', isDefault: true, localClass: 'disk' };
    const manifests = agentManifests({ ...options, storage });
    expect(find('StorageClass', 'shared', manifests)).toMatchObject({
      metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'liqo.io/storage',
      volumeBindingMode: 'WaitForFirstConsumer',
      allowVolumeExpansion: true,
      parameters: { localStorageClass: 'disk' },
    });
    const roomy = find('StorageClass', 'roomy', manifests);
    expect(roomy).toMatchObject({ provisioner: 'storage.isthmus.dev', parameters: { localStorageClass: 'disk' } });
    expect(roomy.metadata.annotations).toBeUndefined();
    expect(find('CSIDriver', 'storage.isthmus.dev', manifests)).toMatchObject({
      spec: { storageCapacity: true, attachRequired: false },
    });
    expect(find('Role', 'isthmus-agent-volumes', manifests).metadata.namespace).toBe('liqo-storage');
    const off = { name: 'ISTHMUS_STORAGE', value: 'false' };
    const environment = (of: KubeObject[]) =>
      find<Deployment>('Deployment', 'isthmus-agent', of).spec?.template.spec?.containers[0]?.env;
    expect(environment(manifests)).not.toContainEqual(off);
    expect(environment(agentManifests(options))).toContainEqual(off);
    expect(agentManifests(options).filter(({ kind }) => kind === 'StorageClass' || kind === 'CSIDriver')).toEqual([]);
  });

  test('run it without any privilege', () => {
    expect(pod()?.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(pod()?.containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(pod()).not.toHaveProperty('hostNetwork');
    expect(pod()?.volumes).toBeUndefined();
  });

  test('end it for its silence only when that is no longer the silence of a busy node', () => {
    const container = pod()?.containers[0];
    if (container === undefined) throw new Error('the agent has no container');
    const { startupProbe, livenessProbe, readinessProbe } = container;
    const atLeast = (probe: typeof livenessProbe) => (probe?.failureThreshold ?? 0) * (probe?.periodSeconds ?? 0);
    expect(atLeast(startupProbe)).toBeGreaterThanOrEqual(300);
    expect(atLeast(livenessProbe)).toBeGreaterThanOrEqual(60);
    for (const probe of [startupProbe, livenessProbe]) expect(probe?.timeoutSeconds).toBeGreaterThanOrEqual(10);
    // A replica that is silent for longer than this cannot decide about pods in time either: another replica takes over.
    expect(atLeast(readinessProbe)).toBeLessThan(10);
    expect(readinessProbe?.timeoutSeconds).toBe(5);
  });

  test('let it hand on the remote roles and its own in single namespaces, and no other, and hold no wildcard outside of our own kinds', () => {
    const { rules = [] } = find<ClusterRole>('ClusterRole', 'isthmus-agent');
    const binding = rules?.filter(({ verbs }) => verbs.includes('bind')) ?? [];
    expect(binding.map(({ resourceNames }) => resourceNames)).toEqual([
      [
        ...remoteRoles().map((role) => role.metadata.name),
        'isthmus-fabric-tenant',
        'isthmus-agent-guest',
        'isthmus-agent-offloaded',
        'isthmus-agent-tenant',
      ],
    ]);
    for (const { apiGroups = [], resources = [], verbs } of rules ?? []) {
      expect(verbs).not.toContain('*');
      expect(verbs).not.toContain('escalate');
      expect(verbs).not.toContain('impersonate');
      if (resources.includes('*')) expect(apiGroups.join()).toMatch(/^[a-z]+\.liqo\.io$|^isthmus\.dev$/);
    }
  });

  test('start with a policy that its own schema accepts', () => {
    const policy = find<KubeObject & { spec: unknown }>('PeeringPolicy', 'default');
    expect(PeeringPolicySpec.parse(policy.spec)).toEqual(policy.spec);
  });

  test('carry the join token in a Secret and nowhere else, and only when there is one', () => {
    const token = 'isthmus1.c2VjcmV0';
    const all = agentManifests({ ...options, joinToken: token });
    const secret = find<Secret>('Secret', 'isthmus-join', all);
    expect(Buffer.from(secret.data?.token ?? '', 'base64').toString()).toBe(token);
    expect(JSON.stringify(all)).not.toContain(token);
    expect(agentManifests(options).map(({ kind }) => kind)).not.toContain('Secret');
  });
});

describe('metrics', () => {
  const withMetrics = (metrics: 'authenticated' | 'open', more: Partial<InstallOptions> = {}) =>
    agentManifests({ ...options, metrics, ...more });
  const envOf = (from: KubeObject[], kind: string, name: string) => {
    const [container] = find<Deployment>(kind, name, from).spec?.template.spec?.containers ?? [];
    const env = Object.fromEntries((container?.env ?? []).map((one) => [one.name, one.value ?? one.valueFrom]));
    return { env, ports: container?.ports ?? [] };
  };

  test('are served nowhere unless that was asked for', () => {
    expect(/ISTHMUS_METRICS|metrics-reader|-metrics"/.test(JSON.stringify(agentManifests(options)))).toBe(false);
    expect(envOf(agentManifests(options), 'DaemonSet', 'isthmus-fabric').ports).toEqual([]);
  });

  test.each([
    { nodeProcess: 'own', port: 8443, host: undefined },
    { nodeProcess: 'shared', port: 11_247, host: { fieldRef: { fieldPath: 'status.podIP' } } },
  ] as const)('of controllers, node process $nodeProcess, are at port $port', ({ nodeProcess, port, host }) => {
    const { env, ports } = envOf(withMetrics('authenticated', { nodeProcess }), 'Deployment', 'isthmus-agent');
    expect(env).toMatchObject({ ISTHMUS_METRICS_PORT: String(port), ISTHMUS_METRICS_ACCESS: 'authenticated' });
    expect(env.ISTHMUS_METRICS_HOST).toEqual(host);
    expect(ports).toContainEqual({ name: 'metrics', containerPort: port, protocol: 'TCP' });
  });

  test('of a node are at its own address, and its process may ask about callers only where it has to', () => {
    const { env } = envOf(withMetrics('authenticated'), 'DaemonSet', 'isthmus-fabric');
    expect(env).toMatchObject({
      ISTHMUS_METRICS_PORT: '11247',
      ISTHMUS_METRICS_HOST: { fieldRef: { fieldPath: 'status.podIP' } },
    });
    const mayReview = (from: KubeObject[]) =>
      find<ClusterRole>('ClusterRole', 'isthmus-fabric', from).rules?.some(({ resources }) =>
        resources?.includes('tokenreviews'),
      );
    expect([mayReview(withMetrics('authenticated')), mayReview(withMetrics('open'))]).toEqual([true, false]);
  });

  test('have a Service for each kind of process and a role for scrapers', () => {
    const from = withMetrics('authenticated');
    expect(find<ClusterRole>('ClusterRole', 'isthmus-metrics-reader', from).rules).toEqual([
      { nonResourceURLs: ['/metrics'], verbs: ['get'] },
    ]);
    for (const [service, workload] of [
      ['isthmus-agent-metrics', 'Deployment/isthmus-agent'],
      ['isthmus-fabric-metrics', 'DaemonSet/isthmus-fabric'],
    ] as const) {
      const { spec } = find<KubeObject & { spec: { selector: Record<string, string> } }>('Service', service, from);
      const [kind = '', name = ''] = workload.split('/');
      expect(find<Deployment>(kind, name, from).spec?.template.metadata?.labels).toMatchObject(spec.selector);
    }
  });
});

describe('the network', () => {
  const fabric = () => find<DaemonSet>('DaemonSet', 'isthmus-fabric').spec?.template.spec;

  test('runs one process on every node but virtual ones, regardless of taints, and opens no listening port', () => {
    expect(fabric()).toMatchObject({ hostNetwork: true, hostPID: true, tolerations: [{ operator: 'Exists' }] });
    const [term] =
      fabric()?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
    expect(term?.matchExpressions).toEqual([
      { key: 'liqo.io/type', operator: 'NotIn', values: ['virtual-node'] },
      { key: 'networking.isthmus.dev/node-process', operator: 'NotIn', values: ['shared'] },
    ]);
    const [container] = fabric()?.containers ?? [];
    expect(container?.command?.at(-1)).toBe('/app/fabric.mjs');
    expect(container?.ports).toBeUndefined();
    const masquerade = (value: string) => ({ name: 'ISTHMUS_FULL_MASQUERADE', value });
    expect(container?.env).toContainEqual(masquerade('true'));
    const { fullMasquerade: _, ...unsaidNetwork } = options.network as NetworkInstallOptions;
    const unsaid = agentManifests({ ...options, network: unsaidNetwork });
    const auto = find<DaemonSet>('DaemonSet', 'isthmus-fabric', unsaid).spec?.template.spec?.containers[0];
    expect(auto?.env).toContainEqual(masquerade('auto'));
    expect(find('Namespace', 'liqo').metadata.labels).toMatchObject({
      'pod-security.kubernetes.io/enforce': 'privileged',
    });
  });

  describe('on a cluster of one node', () => {
    const small: InstallOptions = { ...options, replicas: 1, nodeProcess: 'shared' };
    const agent = () => find<Deployment>('Deployment', 'isthmus-agent', agentManifests(small)).spec;
    const container = () => agent()?.template.spec?.containers[0];

    test('is the work of the controllers, which have what it needs: the host, its rights, its settings', () => {
      expect(agent()?.template.spec).toMatchObject({ hostNetwork: true, hostPID: true });
      expect(container()?.args?.[0]).toBe('all');
      expect(container()?.securityContext).toMatchObject({ privileged: true, readOnlyRootFilesystem: true });
      expect(container()?.env).toContainEqual({ name: 'ISTHMUS_FULL_MASQUERADE', value: 'true' });
      const accounts = (from: KubeObject[]) =>
        find<ClusterRoleBinding>('ClusterRoleBinding', 'isthmus-fabric', from).subjects?.map(({ name }) => name);
      expect(accounts(agentManifests(small))).toEqual(['isthmus-fabric', 'isthmus-agent']);
      expect(accounts(agentManifests(options))).toEqual(['isthmus-fabric']);
    });

    test('listens at the address of the node only for the API server, and for the kubelet at the loopback', () => {
      const env = new Map(container()?.env?.map((one) => [one.name, one.value ?? one.valueFrom?.fieldRef?.fieldPath]));
      expect(env.get('ISTHMUS_LISTEN_HOST')).toBe('status.podIP');
      expect(env.get('ISTHMUS_HEALTH_HOST')).toBe('127.0.0.1');
      for (const probe of [container()?.livenessProbe, container()?.readinessProbe, container()?.startupProbe])
        expect(probe?.httpGet?.host).toBe('127.0.0.1');
      const ports = container()?.ports?.map(({ containerPort }) => containerPort) ?? [];
      const apart = pod()?.containers[0]?.ports?.map(({ containerPort }) => containerPort) ?? [];
      expect(ports.filter((port) => apart.includes(port))).toEqual([]);
    });

    test('ends before its successor begins, since both want the ports of the node', () => {
      expect(agent()?.strategy?.rollingUpdate).toEqual({ maxSurge: 0, maxUnavailable: 1 });
    });

    test('is still found by liqoctl', () => {
      const found = find<Deployment>('Deployment', 'isthmus-agent', agentManifests(small));
      expect(found.metadata.labels).toMatchObject({ 'app.kubernetes.io/component': 'controller-manager' });
      expect(container()?.name).toBe('controller-manager');
      expect(container()?.args?.[1]).toBe('--api-server-address-override=https://192.0.2.1:6443');
    });
  });

  test('lets that process read and report, and decide about gateways only where it is bound', () => {
    const { rules = [] } = find<ClusterRole>('ClusterRole', 'isthmus-fabric');
    const writes = (rules ?? []).filter(({ verbs }) => verbs.some((verb) => !['get', 'list', 'watch'].includes(verb)));
    expect(writes.map(({ resources = [] }) => resources.join())).toEqual([
      'internalnodes',
      'internalnodes/status,connections/status',
      'firewallconfigurations/status,routeconfigurations/status',
      'events',
    ]);
    expect(JSON.stringify(rules)).not.toMatch(/"\*"|secrets|leases/);
    const tenant = find<ClusterRole>('ClusterRole', 'isthmus-fabric-tenant');
    expect(tenant.rules?.map(({ resources }) => resources)).toEqual([['leases'], ['pods']]);
    expect(
      agentManifests(options)
        .filter((object) => 'roleRef' in object)
        .map((object) => JSON.stringify(object)),
    ).not.toEqual(expect.arrayContaining([expect.stringContaining('isthmus-fabric-tenant')]));
  });

  test('holds each tunnel in one container without token, with one capability', () => {
    for (const [kind, name] of [
      ['WgGatewayServerTemplate', 'wireguard-server'],
      ['WgGatewayClientTemplate', 'wireguard-client'],
    ] as const) {
      const { template } = GatewayTemplateSpec.parse(find<KubeObject & { spec: unknown }>(kind, name).spec);
      const { spec } = (template.spec?.deployment ?? {}) as Partial<Deployment>;
      expect(spec?.replicas).toBe(2);
      expect(spec?.template.spec).toMatchObject({ automountServiceAccountToken: false });
      expect(spec?.template.spec?.containers).toHaveLength(1);
      expect(spec?.template.spec?.containers[0]?.securityContext?.capabilities).toEqual({
        drop: ['ALL'],
        add: ['NET_ADMIN'],
      });
    }
  });

  test('is left out when it is not wanted', () => {
    const { network: _, ...without } = options;
    const kinds = agentManifests(without).map(({ kind }) => kind);
    for (const kind of ['DaemonSet', 'Network', 'WgGatewayServerTemplate']) expect(kinds).not.toContain(kind);
    expect(kinds.at(-1)).toBe('Deployment');
  });
});
