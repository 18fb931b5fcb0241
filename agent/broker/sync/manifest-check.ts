/** Whether this cluster accepts a manifest from the broker: a closed list of kinds, names and fields (docs/design/principles.md#the-agent-checks-the-broker). Pure. */
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerKind } from '../kinds/all.ts';
import { tenantNamespaceOf } from '../kinds/derived.ts';
import type { Accepted } from '../kinds/kind.ts';

/** Why the agent does not apply a manifest. */
export interface Rejection {
  readonly code: string;
  readonly message: string;
}

const metadataFields: readonly string[] = ['name', 'namespace', 'labels', 'annotations'];

/** Undefined: accepted. `self` is this cluster's ID. */
export function manifestRejection(set: DesiredSet, manifest: KubeManifest, self: string): Rejection | undefined {
  const kind = brokerKind(manifest.kind);
  const accepted = kind?.accepted;
  const message =
    !kind || !accepted || apiVersionOf(kind.type) !== manifest.apiVersion || !accepted.roles.includes(set.role)
      ? `a broker may not apply ${manifest.apiVersion} ${manifest.kind} to a ${set.role}`
      : (metadataFault(set, manifest, accepted, kind.type.namespaced) ??
        memberFault(manifest, accepted) ??
        accepted.check?.(manifest, set, self));
  return message === undefined ? undefined : { code: 'object_not_allowed', message };
}

function metadataFault(
  set: DesiredSet,
  { kind, metadata }: KubeManifest,
  accepted: Accepted,
  namespaced: boolean,
): string | undefined {
  const names = accepted.names(set);
  if (!names.includes(metadata.name)) return `metadata.name is ${metadata.name}, accepted is ${names.join(' or ')}`;
  const namespace = namespaced ? tenantNamespaceOf(set) : undefined;
  if (metadata.namespace !== namespace)
    return `metadata.namespace is ${metadata.namespace ?? 'absent'}, accepted is ${namespace ?? 'none'}`;
  const field = Object.keys(metadata).find((key) => !metadataFields.includes(key));
  if (field !== undefined) return `metadata.${field} is not accepted from a broker`;
  const stray =
    Object.keys(metadata.labels ?? {}).find((key) => !accepted.labels.includes(key)) ??
    Object.keys(metadata.annotations ?? {}).find((key) => !accepted.annotations.includes(key));
  if (stray !== undefined) return `label or annotation ${stray} is not accepted from a broker on a ${kind}`;
  const peer = metadata.labels?.[label.remoteClusterId];
  return peer === undefined || peer === set.peer
    ? undefined
    : `label ${label.remoteClusterId} is ${peer}, accepted is ${set.peer}`;
}

function memberFault(manifest: KubeManifest, { members }: Accepted): string | undefined {
  for (const [member, value] of Object.entries(manifest)) {
    if (member === 'apiVersion' || member === 'kind' || member === 'metadata') continue;
    // `constructor` and the like are members of every object in JavaScript, and of no manifest that is accepted.
    const fields = Object.hasOwn(members, member) ? members[member] : undefined;
    if (!fields) return `${member} is not accepted from a broker on a ${manifest.kind}`;
    if (typeof value !== 'object' || value === null) continue;
    const stray = Object.keys(value).find((key) => !fields.includes(key));
    if (stray !== undefined) return `${member}.${stray} is not accepted from a broker on a ${manifest.kind}`;
  }
  return undefined;
}
