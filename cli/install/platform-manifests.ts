/** Objects that only some distributions need. Pure. */
import type { PlatformSettings } from '#cli/platform/settings.ts';
import { agentAccount } from '#shared/domain/agent-roles.ts';
import type { ClusterRole, ClusterRoleBinding } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName, gatewayConstraintsRole } from '#shared/domain/network-keys.ts';
import { defaultOptionsTemplate, vkOptionsTemplates } from '#shared/schema/liqo/vk-options-template.ts';
import { installLabel } from './install-label.ts';

interface PlatformOptions {
  readonly platform?: PlatformSettings;
  readonly network?: unknown;
  readonly nodeProcess?: 'own' | 'shared';
}

const rbac = 'rbac.authorization.k8s.io';

export const securityContextConstraints: ResourceType = {
  group: 'security.openshift.io',
  version: 'v1',
  kind: 'SecurityContextConstraints',
  plural: 'securitycontextconstraints',
  namespaced: false,
};

export const platformManifests = ({ platform, network, nodeProcess }: PlatformOptions): KubeObject[] => [
  ...(platform?.virtualNodeLabels === undefined ? [] : [optionsTemplate(platform.virtualNodeLabels)]),
  ...(platform?.securityContextConstraints && network !== undefined
    ? constraints([fabricName, ...(nodeProcess === 'shared' ? [agentAccount] : [])])
    : []),
];

const optionsTemplate = (nodeExtraLabels: Readonly<Record<string, string>>): KubeObject => ({
  apiVersion: apiVersionOf(vkOptionsTemplates),
  kind: vkOptionsTemplates.kind,
  metadata: { name: defaultOptionsTemplate, namespace: systemNamespace, labels: { ...installLabel } },
  ...{
    spec: { createNode: true, disableNetworkCheck: false, containerImage: '', metricsEnabled: false, nodeExtraLabels },
  },
});

/** Node processes get OpenShift's own `privileged`; gateways one that has what they are written with, bound in tenant namespaces by the agent. */
const constraints = (accounts: readonly string[]): KubeObject[] => [
  gatewayConstraints(),
  role(gatewayConstraintsRole, gatewayConstraintsRole),
  role(`${fabricName}-scc`, 'privileged'),
  privilegedBinding(accounts),
];

const privilegedBinding = (accounts: readonly string[]): ClusterRoleBinding => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: `${fabricName}-scc`, labels: { ...installLabel } },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: `${fabricName}-scc` },
  subjects: accounts.map((name) => ({ kind: 'ServiceAccount', name, namespace: systemNamespace })),
});

const role = (name: string, constraint: string): ClusterRole => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRole',
  metadata: { name, labels: { ...installLabel } },
  rules: [
    {
      apiGroups: [securityContextConstraints.group],
      resources: [securityContextConstraints.plural],
      verbs: ['use'],
      resourceNames: [constraint],
    },
  ],
});

const gatewayConstraints = (): KubeObject => ({
  apiVersion: apiVersionOf(securityContextConstraints),
  kind: securityContextConstraints.kind,
  metadata: { name: gatewayConstraintsRole, labels: { ...installLabel } },
  ...{
    allowHostDirVolumePlugin: true,
    allowHostIPC: false,
    allowHostNetwork: false,
    allowHostPID: false,
    allowHostPorts: false,
    allowPrivilegeEscalation: false,
    allowPrivilegedContainer: false,
    allowedCapabilities: ['NET_ADMIN'],
    requiredDropCapabilities: [],
    defaultAddCapabilities: [],
    readOnlyRootFilesystem: true,
    runAsUser: { type: 'RunAsAny' },
    seLinuxContext: { type: 'MustRunAs' },
    fsGroup: { type: 'RunAsAny' },
    supplementalGroups: { type: 'RunAsAny' },
    seccompProfiles: ['runtime/default'],
    volumes: ['emptyDir', 'hostPath', 'secret'],
    users: [],
    groups: [],
  },
});
