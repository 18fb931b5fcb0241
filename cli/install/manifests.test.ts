import { describe, expect, test } from 'vitest';
import type { ClusterRole, Deployment } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { PeeringPolicySpec } from '#shared/schema/isthmus/peering-policy.ts';
import { typeOf } from './apply.ts';
import { agentManifests, type InstallOptions } from './manifests.ts';

const options: InstallOptions = {
  clusterId: 'rome',
  image: 'isthmus.dev/agent:1',
  apiServerUrl: 'https://192.0.2.1:6443',
  replicas: 2,
};
const find = <T extends KubeObject>(kind: string, name: string, from = agentManifests(options)): T => {
  const found = from.find((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found as T;
};
const pod = () => find<Deployment>('Deployment', 'isthmus-agent').spec?.template.spec;

describe('the manifests of the agent', () => {
  test('have a handle for each kind and name nothing twice', () => {
    const keys = agentManifests(options).map((object) => `${typeOf(object).plural}/${object.metadata.name}`);
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

  test('let it hand on the remote roles and no other, and hold no wildcard outside of our own kinds', () => {
    const { rules = [] } = find<ClusterRole>('ClusterRole', 'isthmus-agent');
    const binding = rules?.filter(({ verbs }) => verbs.includes('bind')) ?? [];
    expect(binding.map(({ resourceNames }) => resourceNames)).toEqual([
      remoteRoles().map((role) => role.metadata.name),
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
