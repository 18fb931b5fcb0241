/**
 * Mistakes in hand-written manifests that no other controller can report, because the object is not recognised for what it should be: a misspelt
 * label, a key in the wrong place, a binding to a role that does not exist. Each is reported on the object that is wrong. Pure.
 */
import { faultOfKeys } from '#agent/network/gateway/wireguard/keys.ts';
import type { ClusterRole } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, RoleBinding, Secret } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkLabel } from '#shared/domain/network-keys.ts';
import { remoteRoleLabel, remoteRoleName } from '#shared/domain/remote-roles.ts';
import type { PublicKey } from '#shared/schema/liqo/public-key.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

export interface Fault {
  readonly object: KubeObject;
  readonly reason: string;
  readonly message: string;
}

export interface NamedKeys extends KubeObject {
  readonly spec: { readonly secretRef?: { readonly name?: string } };
}

/** Everything in one namespace that may be part of a peering. */
export interface NamespaceFacts {
  readonly clusterId: string;
  readonly namespace: Namespace;
  readonly secrets: readonly Secret[];
  readonly publicKeys: readonly PublicKey[];
  /** GatewayServers and GatewayClients. */
  readonly gateways: readonly NamedKeys[];
  readonly tenants: readonly Tenant[];
  readonly bindings: readonly RoleBinding[];
  /** ResourceSlices of this cluster and Configurations. */
  readonly others: readonly KubeObject[];
  /** Those that consumers are bound to, of the whole cluster. */
  readonly remoteRoles: readonly ClusterRole[];
}

const identityTypes = ['ControlPlane', 'ResourceSlice'];

export function faultsOf(facts: NamespaceFacts): readonly Fault[] {
  const { namespace, publicKeys, gateways, tenants, others } = facts;
  const isInUse = [publicKeys, gateways, tenants, others].some((objects) => objects.length > 0);
  const own = faultOfNamespace(namespace, facts.clusterId, isInUse);
  if (own !== undefined) return [own];
  const peer = namespace.metadata.labels?.[label.remoteClusterId];
  if (peer === undefined || namespace.metadata.labels?.[label.tenantNamespace] === undefined) return [];
  return [
    ...facts.secrets.flatMap((secret) => faultOfSecret(secret, peer, gateways) ?? []),
    ...publicKeys.flatMap((key) => faultOfPublicKey(key, peer, facts) ?? []),
    ...tenants.flatMap((tenant) => faultOfTenant(tenant, facts)),
  ];
}

/** Whether something is still expected that this controller is not told about: unlabelled Secrets and RoleBindings are not watched. */
export function isIncomplete({ secrets, others, tenants, bindings, gateways }: NamespaceFacts): boolean {
  const hasCredentials = secrets.some(({ metadata }) => metadata.labels?.[label.identityType] === 'ControlPlane');
  const wantsCredentials = others.some(({ kind }) => kind === 'ResourceSlice');
  const isUnbound = tenants.some(isDeclared) && bindings.length === 0;
  const names = new Set(secrets.map(({ metadata }) => metadata.name));
  const lacksKeys = gateways.some(({ spec }) => spec.secretRef?.name !== undefined && !names.has(spec.secretRef.name));
  return (wantsCredentials && !hasCredentials) || isUnbound || lacksKeys;
}

function faultOfNamespace(namespace: Namespace, clusterId: string, isInUse: boolean): Fault | undefined {
  const labels = namespace.metadata.labels ?? {};
  const fault = (reason: string, message: string): Fault => ({ object: namespace, reason, message });
  const [mark, peer] = [labels[label.tenantNamespace], labels[label.remoteClusterId]];
  if (mark === undefined && !isInUse) return undefined;
  if (mark !== 'true') {
    return fault(
      'NoTenantNamespace',
      `it holds objects of a peering, but label ${label.tenantNamespace} is ${mark ?? 'absent'}${hint(labels, label.tenantNamespace)}; set it to "true"`,
    );
  }
  if (peer === undefined || peer === '') {
    return fault(
      'MissingClusterID',
      `it is a tenant namespace, but label ${label.remoteClusterId} is absent${hint(labels, label.remoteClusterId)}; set it to the cluster ID of the peer`,
    );
  }
  if (peer === clusterId) {
    return fault(
      'OwnClusterID',
      `label ${label.remoteClusterId} is ${peer}, which is this cluster; set it to the cluster ID of the peer`,
    );
  }
  return undefined;
}

function faultOfSecret(secret: Secret, peer: string, gateways: readonly NamedKeys[]): Fault | undefined {
  const { labels = {}, name } = secret.metadata;
  const fault = (reason: string, message: string): Fault => ({ object: secret, reason, message });
  const type = labels[label.identityType];
  if (secret.data?.kubeconfig !== undefined || type !== undefined) {
    if (type === undefined || !identityTypes.includes(type)) {
      return fault(
        'NoIdentityType',
        `label ${label.identityType} is ${type ?? 'absent'}${hint(labels, label.identityType)}; for credentials of the control plane at ${peer} it is ControlPlane`,
      );
    }
    if (labels[label.remoteClusterId] === undefined) return missingPeer(secret, peer);
  }
  if (!gateways.some(({ spec }) => spec.secretRef?.name === name)) return undefined;
  const malformed = faultOfKeys(secret);
  return malformed === undefined ? undefined : fault('SecretMalformed', malformed);
}

const missingPeer = (object: KubeObject, peer: string): Fault => ({
  object,
  reason: 'MissingClusterID',
  message: `label ${label.remoteClusterId} is absent${hint(object.metadata.labels ?? {}, label.remoteClusterId)}; here it is ${peer}`,
});

function faultOfPublicKey(
  key: PublicKey,
  peer: string,
  { secrets, gateways, namespace }: NamespaceFacts,
): Fault | undefined {
  const { labels = {} } = key.metadata;
  const claimed = labels[label.remoteClusterId];
  if (claimed === undefined) return missingPeer(key, peer);
  const fault = (reason: string, message: string): Fault => ({ object: key, reason, message });
  if (claimed !== peer) {
    return fault(
      'WrongNamespace',
      `label ${label.remoteClusterId} is ${claimed}, but ${namespace.metadata.name} is the tenant namespace of ${peer}; correct the label or move it`,
    );
  }
  if (labels[networkLabel.gatewayResource] !== 'true') {
    return fault(
      'NoGatewayResource',
      `label ${networkLabel.gatewayResource} is ${labels[networkLabel.gatewayResource] ?? 'absent'}${hint(labels, networkLabel.gatewayResource)}; set it to "true", or no gateway takes the key`,
    );
  }
  const named = new Set(gateways.flatMap(({ spec, metadata }) => [spec.secretRef?.name, `gw-${metadata.name}`]));
  const own = secrets.find(
    ({ metadata, data }) =>
      named.has(metadata.name) && data?.publicKey !== undefined && data.publicKey === key.spec.publicKey,
  );
  if (own === undefined) return undefined;
  return fault(
    'OwnKey',
    `spec.publicKey is the key of this cluster's own gateway (Secret ${own.metadata.name}); put the public key of ${peer} here`,
  );
}

const isDeclared = ({ spec }: Tenant): boolean => spec.authzPolicy === 'TolerateNoHandshake';

/** Under a handshake the agent binds the roles itself. */
function faultOfTenant(tenant: Tenant, { bindings, remoteRoles, namespace }: NamespaceFacts): Fault[] {
  if (!isDeclared(tenant) || tenant.spec.tenantCondition === 'Drained') return [];
  const own = remoteRoles.filter(({ metadata }) => metadata.labels?.[remoteRoleLabel] === remoteRoleName.controlPlane);
  const names = own.map(({ metadata }) => metadata.name);
  const [wanted = `liqo-${remoteRoleName.controlPlane}`] = names;
  if (bindings.some(({ roleRef }) => roleRef.kind === 'ClusterRole' && names.includes(roleRef.name))) return [];
  const almost = bindings.find(({ roleRef }) => isAlmost(roleRef.name, wanted));
  if (almost !== undefined) {
    return [
      {
        object: almost,
        reason: 'NoSuchRole',
        message: `roleRef.name is ${almost.roleRef.name}, which is no role of consumers; it should be ${wanted}. A roleRef cannot be changed: delete the RoleBinding and create it again`,
      },
    ];
  }
  return [
    {
      object: tenant,
      reason: 'NoBinding',
      message: `no user may act for ${tenant.spec.clusterID} yet: create a RoleBinding in namespace ${namespace.metadata.name} of ClusterRole ${wanted} to the user of its credentials`,
    },
  ];
}

/** Names a label that looks like the missing one. */
function hint(labels: Readonly<Record<string, string>>, wanted: string): string {
  const near = Object.keys(labels).find((key) => isAlmost(key, wanted));
  return near === undefined ? '' : ` (${near} looks like a misspelling of it)`;
}

const mostEdits = 2;

/** Differs, by at most two edits or in case only. */
export const isAlmost = (text: string, wanted: string): boolean =>
  text !== wanted && (text.toLowerCase() === wanted.toLowerCase() || edits(text, wanted) <= mostEdits);

/** Levenshtein distance; anything clearly above the limit counts as above it. */
function edits(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > mostEdits) return mostEdits + 1;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
