/** Rules of the authentication and virtual node kinds (docs/design/control-plane.md#what-does-admission-check). Pure. */
import { isDeepStrictEqual } from 'node:util';
import { allow, deny, labelPatch, type PatchOperation, type Review, type Verdict } from '#agent/admission/review.ts';
import { consumerRefusal } from '#agent/model/policies.ts';
import type { KubeObject, Node } from '#shared/domain/kube-object.ts';
import { annotation, controlPlaneGroup, isthmusAnnotation, label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { VkOptionsTemplateSpec } from '#shared/schema/liqo/vk-options-template.ts';
import { validateFinalizers, validateKeptFinalizers } from './finalizers.ts';

type Texts = Readonly<Record<string, string>>;

/** Certificates of consumers' control planes carry this group. */
export const isConsumer = ({ user }: Pick<Review, 'user'>): boolean => user.groups.includes(controlPlaneGroup);

const isReplica = ({ metadata }: KubeObject): boolean => metadata.labels?.[label.replicated] === 'true';

const guardedLabels = [label.remoteClusterId, label.replication, label.replicated, label.originId, label.remoteId];
const guardedAnnotations = [annotation.cordon, annotation.cordonTenant, isthmusAnnotation.drain];

/**
 * What a consumer may write in its tenant namespace here: copies of its own objects, marked as such. Anything else would be taken for an
 * object of this cluster, and replicated or acted upon in its name.
 */
export function validateReplica({ operation, user, object, before, isOrphaning = false }: Review): Verdict {
  const origin = before?.metadata.labels?.[label.originId];
  if (before && (before.metadata.labels?.[label.replicated] !== 'true' || origin !== user.name)) {
    return deny(
      'forbidden',
      `${before.kind} ${before.metadata.name} is not a copy from consumer ${user.name}: it may not be changed or deleted with its credentials`,
    );
  }
  if (isOrphaning)
    return deny(
      'forbidden',
      `propagationPolicy is Orphan: what the provider made of ${before?.kind} ${before?.metadata.name} goes with it; accepted are Background and Foreground`,
    );
  if (!object) return allow;
  const finalizers = validateFinalizers(object, before);
  if (!finalizers.allowed) return finalizers;
  const kept = before ? validateKeptFinalizers(object, before) : allow;
  if (!kept.allowed) return kept;
  const { labels = {}, annotations = {} } = object.metadata;
  if (operation === 'CREATE') {
    const wanted: Texts = {
      [label.replicated]: 'true',
      [label.replication]: 'false',
      [label.originId]: user.name,
      [label.remoteClusterId]: user.name,
    };
    const wrong = Object.keys(wanted).find((key) => labels[key] !== wanted[key]);
    if (wrong !== undefined) {
      return deny(
        'forbidden',
        `metadata.labels[${wrong}] is ${labels[wrong] ?? 'absent'}: from consumer ${user.name} accepted is ${wanted[wrong]}`,
      );
    }
    return allow;
  }
  return (
    unchanged(before?.metadata.labels, labels, guardedLabels, 'labels') ??
    unchanged(before?.metadata.annotations, annotations, guardedAnnotations, 'annotations') ??
    allow
  );
}

/** Of each kind; replicas of the webhooks that ask at the same instant may each let in what the other did not see yet. A peering needs one NamespaceMap, one Renew and a slice for each virtual node; each costs the provider's controllers a look at all others. */
const mostCopies = 100;

/** `others`: how many objects of the kind there are in its tenant namespace, those included that were let in and are not stored yet. */
export const validateCount = ({ kind }: Pick<KubeObject, 'kind'>, others: number): Verdict =>
  others < mostCopies
    ? allow
    : deny(
        'quota_exceeded',
        `there are ${others} objects of kind ${kind} here: accepted of one consumer are ${mostCopies}`,
      );

function unchanged(before: Texts = {}, after: Texts, keys: readonly string[], where: string): Verdict | undefined {
  const key = keys.find((k) => before[k] !== after[k]);
  if (key === undefined) return undefined;
  return deny(
    'forbidden',
    `metadata.${where}[${key}] is the provider's: a consumer may not change it from ${before[key] ?? 'absent'} to ${after[key] ?? 'absent'}`,
  );
}

/** Local slices give their name to a VirtualNode and a Node, so two cannot share one. `others`: all slices of the cluster. */
export function validateSlice(slice: ResourceSlice, namespace: string, others: readonly ResourceSlice[]): Verdict {
  if (isReplica(slice)) return allow;
  const taken = others.find(
    (o) => !isReplica(o) && o.metadata.name === slice.metadata.name && o.metadata.namespace !== namespace,
  );
  if (!taken) return allow;
  return deny(
    'already_exists',
    `metadata.name ${slice.metadata.name} is that of a ResourceSlice in namespace ${taken.metadata.namespace}: the virtual node takes this name, so choose another`,
  );
}

/** A slice of this cluster itself takes capacity: the policies must let it, regardless of the writer. */
export function validateWish(slice: ResourceSlice, policies: readonly PeeringPolicy[]): Verdict {
  const { labels = {} } = slice.metadata;
  const provider = slice.spec?.providerClusterID ?? labels[label.remoteId] ?? labels[label.remoteClusterId];
  const refusal = isReplica(slice) || provider === undefined ? undefined : consumerRefusal(policies, provider);
  return refusal === undefined ? allow : deny('policy_refused', refusal);
}

export const remoteClusterPatch = (object: KubeObject, clusterId: unknown): PatchOperation[] =>
  typeof clusterId === 'string' && clusterId !== '' ? labelPatch(object, label.remoteClusterId, clusterId) : [];

export interface TenantContext {
  readonly namespace: string;
  readonly namespaceLabels: Texts;
  /** All Tenants of the cluster. */
  readonly others: readonly Tenant[];
  /** The caller may change Tenants of all namespaces: an administrator of the provider, not a peering user. */
  readonly isAdministrator: boolean;
}

/** Decisions of the provider's administrator about the way in. */
const waysIn = [isthmusAnnotation.inBandWithoutToken, isthmusAnnotation.frontDoor] as const;
const isNewlyTrue = (tenant: Tenant, before: Tenant | undefined, key: string): boolean =>
  tenant.metadata.annotations?.[key] === 'true' && before?.metadata.annotations?.[key] !== 'true';
/** Whether it is to be let in without a token, or by the front door, from now on, so that it counts by whom. */
export const letsIn = (tenant: Tenant, before: Tenant | undefined): boolean =>
  waysIn.some((key) => isNewlyTrue(tenant, before, key));

function refusedAnnotation(tenant: Tenant, before: Tenant | undefined, isAdministrator: boolean): Verdict | undefined {
  for (const key of waysIn) {
    const value = tenant.metadata.annotations?.[key];
    if (value === undefined || value === before?.metadata.annotations?.[key]) continue;
    const field = `metadata.annotations[${key}]`;
    if (value !== 'true' && value !== 'false')
      return deny('invalid_input', `${field} is ${JSON.stringify(value)}: accepted is "true" or "false"`);
    if (isNewlyTrue(tenant, before, key) && !isAdministrator)
      return deny(
        'forbidden',
        `${field} is the provider's: accepted from users that may update tenants.authentication.liqo.io in all namespaces`,
      );
  }
  return undefined;
}

export function validateTenant(
  tenant: Tenant,
  before: Tenant | undefined,
  { namespace, namespaceLabels, others, isAdministrator }: TenantContext,
): Verdict {
  // Removing finalizers stays possible for objects that today's rules would refuse.
  if (tenant.metadata.deletionTimestamp) return allow;
  const refused = refusedAnnotation(tenant, before, isAdministrator);
  if (refused !== undefined) return refused;
  if (
    before &&
    isDeepStrictEqual(before.spec, tenant.spec) &&
    isDeepStrictEqual(before.metadata.labels, tenant.metadata.labels)
  )
    return allow;
  const { clusterID } = tenant.spec;
  if (namespaceLabels[label.tenantNamespace] !== 'true') {
    return deny(
      'invalid_input',
      `namespace ${namespace} is no tenant namespace: it needs label ${label.tenantNamespace}=true`,
    );
  }
  const labelled = tenant.metadata.labels?.[label.remoteClusterId];
  if (labelled !== clusterID) {
    return deny(
      'invalid_input',
      `metadata.labels[${label.remoteClusterId}] is ${labelled ?? 'absent'}: accepted is spec.clusterID, ${clusterID}`,
    );
  }
  const owner = namespaceLabels[label.remoteClusterId];
  if (owner !== clusterID) {
    return deny(
      'forbidden',
      `spec.clusterID is ${clusterID}, but namespace ${namespace} is that of ${owner ?? 'no cluster'}`,
    );
  }
  const other = others.find((o) => (o.metadata.namespace === namespace) !== (o.metadata.name === tenant.metadata.name));
  if (before || !other) return allow;
  return deny(
    'already_exists',
    `Tenant ${other.metadata.name} exists in namespace ${other.metadata.namespace}: accepted is one Tenant in a namespace, and each name once in the cluster`,
  );
}

/** `node`: the Node of that name; `others`: all VirtualNodes. The Node of a VirtualNode that was removed by force may be taken over. */
export function validateNewVirtualNode(
  { metadata, spec }: VirtualNode,
  node: Node | undefined,
  others: readonly VirtualNode[],
): Verdict {
  if (!node) return allow;
  const labels = node.metadata.labels ?? {};
  const isOurs = labels[label.type] === virtualNodeType && labels[label.remoteClusterId] === spec.clusterID;
  if (isOurs && !others.some((other) => other.metadata.name === metadata.name)) return allow;
  return deny(
    'already_exists',
    `metadata.name ${metadata.name} is that of an existing Node: a VirtualNode gives its name to its Node, so choose another`,
  );
}

/** Only what is absent. The Deployment of Liqo's virtual kubelet is not filled in: here all virtual nodes run in the agent. */
export function virtualNodePatch(
  { spec }: VirtualNode,
  options: Partial<Pick<VkOptionsTemplateSpec, 'createNode' | 'disableNetworkCheck'>> = {},
): PatchOperation[] {
  const { createNode = true, disableNetworkCheck = false } = options;
  return [
    ...(spec.createNode === undefined ? [{ op: 'add', path: '/spec/createNode', value: createNode } as const] : []),
    ...(spec.disableNetworkCheck === undefined
      ? [{ op: 'add', path: '/spec/disableNetworkCheck', value: disableNetworkCheck } as const]
      : []),
  ];
}
