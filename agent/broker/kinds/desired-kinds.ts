/** What this cluster accepts from a broker: a closed list of kinds, names and fields. Nobody obeys blindly (docs/design/principles.md#the-agent-checks-the-broker). */
import type { Rejection, Rule } from '#agent/broker/kinds/rule.ts';
import { annotation, isthmusAnnotation, label, name } from '#shared/domain/liqo-keys.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { linkRules } from './link-kinds.ts';

const common = [label.remoteClusterId, 'isthmus.dev/peering'] as const;
const authentication = 'authentication.liqo.io/v1beta1';

const rules: Readonly<Record<string, Rule>> = {
  Namespace: {
    apiVersion: 'v1',
    roles: ['consumer', 'provider'],
    names: (set) => [name.tenantNamespace(set.peer)],
    namespaced: false,
    labels: [
      ...common,
      label.tenantNamespace,
      'pod-security.kubernetes.io/enforce',
      'pod-security.kubernetes.io/audit',
      'pod-security.kubernetes.io/warn',
    ],
    annotations: [],
    members: {},
  },
  Secret: {
    apiVersion: 'v1',
    roles: ['consumer', 'provider'],
    names: (set) => [set.role === 'consumer' ? name.signedNonceSecret : name.nonceSecret],
    namespaced: true,
    labels: [...common, label.nonce, label.signedNonce],
    annotations: [],
    members: { data: ['nonce'], type: [] },
  },
  Tenant: {
    apiVersion: authentication,
    roles: ['provider'],
    names: (set) => [set.peer],
    namespaced: true,
    labels: common,
    annotations: [isthmusAnnotation.keySuccession],
    members: { spec: ['clusterID', 'publicKey', 'csr', 'signature', 'authzPolicy', 'proxyURL'] },
  },
  Identity: {
    apiVersion: authentication,
    roles: ['consumer'],
    names: (set) => [name.controlPlaneIdentity(set.peer)],
    namespaced: true,
    labels: common,
    annotations: [],
    members: { spec: ['clusterID', 'type', 'authParams', 'namespace'] },
  },
  ResourceSlice: {
    apiVersion: authentication,
    roles: ['consumer'],
    names: (set) => [set.peer],
    namespaced: true,
    labels: [...common, label.replication, label.remoteId],
    annotations: [annotation.createVirtualNode],
    members: { spec: ['class', 'providerClusterID', 'consumerClusterID', 'resources'] },
  },
  ...linkRules,
};

/** Undefined: accepted. */
export function reject(set: DesiredSet, manifest: KubeManifest, self: string): Rejection | undefined {
  const refuse = (message: string): Rejection => ({ code: 'object_not_allowed', message });
  const rule = rules[manifest.kind];
  if (!rule || rule.apiVersion !== manifest.apiVersion || !rule.roles.includes(set.role)) {
    return refuse(`a broker may not apply ${manifest.apiVersion} ${manifest.kind} to a ${set.role}`);
  }
  const { metadata } = manifest;
  const names = rule.names(set, self);
  if (!names.includes(metadata.name))
    return refuse(`metadata.name is ${metadata.name}, accepted is ${names.join(' or ')}`);
  const namespace = rule.namespaced ? name.tenantNamespace(set.peer) : undefined;
  if (metadata.namespace !== namespace) {
    return refuse(`metadata.namespace is ${metadata.namespace ?? 'absent'}, accepted is ${namespace ?? 'none'}`);
  }
  for (const key of Object.keys(metadata)) {
    if (!['name', 'namespace', 'labels', 'annotations'].includes(key))
      return refuse(`metadata.${key} is not accepted from a broker`);
  }
  const stray =
    Object.keys(metadata.labels ?? {}).find((key) => !rule.labels.includes(key)) ??
    Object.keys(metadata.annotations ?? {}).find((key) => !rule.annotations.includes(key));
  if (stray !== undefined)
    return refuse(`label or annotation ${stray} is not accepted from a broker on a ${manifest.kind}`);
  if (metadata.labels?.[label.remoteClusterId] !== undefined && metadata.labels[label.remoteClusterId] !== set.peer) {
    return refuse(
      `label ${label.remoteClusterId} is ${metadata.labels[label.remoteClusterId]}, accepted is ${set.peer}`,
    );
  }
  const problem = rejectMembers(manifest, rule) ?? rejectParties(set, manifest, self);
  if (problem) return problem;
  const wrong = rule.check?.(manifest, set);
  return wrong === undefined ? undefined : refuse(wrong);
}

function rejectMembers(manifest: KubeManifest, rule: Rule): Rejection | undefined {
  for (const [member, value] of Object.entries(manifest)) {
    if (member === 'apiVersion' || member === 'kind' || member === 'metadata') continue;
    const accepted = rule.members[member];
    if (!accepted)
      return { code: 'object_not_allowed', message: `${member} is not accepted from a broker on a ${manifest.kind}` };
    if (typeof value !== 'object' || value === null) continue;
    const stray = Object.keys(value).find((key) => !accepted.includes(key));
    if (stray !== undefined) {
      return {
        code: 'object_not_allowed',
        message: `${member}.${stray} is not accepted from a broker on a ${manifest.kind}`,
      };
    }
  }
  return undefined;
}

/** The cluster IDs inside the spec must be the two parties of this peering. */
function rejectParties(set: DesiredSet, manifest: KubeManifest, self: string): Rejection | undefined {
  const spec = (manifest as { spec?: Record<string, unknown> }).spec ?? {};
  const expected: Record<string, string> = {
    clusterID: set.peer,
    providerClusterID: set.peer,
    consumerClusterID: self,
  };
  for (const [field, value] of Object.entries(expected)) {
    if (spec[field] !== undefined && spec[field] !== value) {
      return { code: 'object_not_allowed', message: `spec.${field} is ${String(spec[field])}, accepted is ${value}` };
    }
  }
  return undefined;
}
