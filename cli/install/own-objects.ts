/**
 * Everything in a cluster that is there because of Isthmus, and what taking Isthmus out does with each. The one list that `--dry-run` prints,
 * that the removal works off, and by which it looks whether anything is left.
 */
import type { KubeClient } from '#cli/cluster/open.ts';
import { retryReads } from '#cli/cluster/retry.ts';
import type { CliIo } from '#cli/output/io.ts';
import { table } from '#cli/output/table.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  clusterRoles,
  configMaps,
  csiDrivers,
  csiStorageCapacities,
  customResourceDefinitions,
  daemonSets,
  deployments,
  leases,
  namespaces,
  nodes,
  type PersistentVolume,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  roleBindings,
  roles,
  type StorageClass,
  secrets,
  serviceAccounts,
  services,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type ObjectRef, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { isthmusLabel, label, systemNamespace, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { nodeProcessLabel } from '#shared/domain/network-keys.ts';
import {
  driverLabel,
  moveFinalizer,
  remoteVolumeDriver,
  storageAnnotation,
  storageNamespace,
  volumeFinalizer,
} from '#shared/domain/storage-keys.ts';
import { isOurVolume } from '#shared/domain/volumes.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { crdName } from '#shared/schema/crd.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { peeringLocks } from '#shared/schema/isthmus/peering-lock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { trustedPeers } from '#shared/schema/isthmus/trusted-peer.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { networkPolicies } from './caller-manifests.ts';
import { installLabel } from './install-label.ts';
import { defaultPolicy } from './manifests.ts';
import { securityContextConstraints } from './platform-manifests.ts';
import { isInstalled } from './settle-storage.ts';
import { ourConfigurations } from './webhooks.ts';

/** `unmark`: an object of another owner, from which our mark is taken. */
type Fate = 'remove' | 'unmark' | 'keep';

export interface OwnObject {
  readonly type: ResourceType;
  readonly object: KubeObject;
  readonly fate: Fate;
  /** For people: the mark, or why it is kept. */
  readonly note?: string;
}

/** Made by controllers, and of no use without them. What people wrote stays, unless it stands in the system namespace. */
const made: readonly ResourceType[] = [
  networkKinds.gatewayServers,
  networkKinds.gatewayClients,
  networkKinds.wgGatewayServers,
  networkKinds.wgGatewayClients,
  networkKinds.connections,
  networkKinds.internalFabrics,
  networkKinds.internalNodes,
];
const installSelector = Object.entries(installLabel)
  .map(([key, value]) => `${key}=${value}`)
  .join();
const selectors = [installSelector, `${label.managed}=true`];
const rights: readonly ResourceType[] = [
  clusterRoles,
  clusterRoleBindings,
  roles,
  roleBindings,
  // Served on OpenShift only.
  securityContextConstraints,
];
const inSystemNamespace: readonly ResourceType[] = [
  deployments,
  daemonSets,
  services,
  configMaps,
  secrets,
  serviceAccounts,
  leases,
  networkPolicies,
];
/** Kubernetes puts these into every namespace. */
const ofKubernetes = new Set(['ConfigMap/kube-root-ca.crt', 'ServiceAccount/default']);
const withPurge = 'removed with --purge';

const isSame = (a: ResourceType, b: ResourceType): boolean => a.group === b.group && a.plural === b.plural;

/** `purge`: also what a later installation would go on with. */
export async function ownObjects(io: CliIo, kube: KubeClient, purge: boolean): Promise<OwnObject[]> {
  const remove = ({ type, object }: { readonly type: ResourceType; readonly object: KubeObject }): OwnObject => ({
    type,
    object,
    fate: 'remove',
  });
  const onlyWithPurge = (type: ResourceType, object: KubeObject): OwnObject =>
    purge ? { type, object, fate: 'remove' } : { type, object, fate: 'keep', note: withPurge };
  return [
    ...(await ourConfigurations(kube)).map(remove),
    ...(await ofOurKinds(io, kube, onlyWithPurge)),
    ...(await marked(kube, purge)),
    ...(await grantedRights(kube)).map(remove),
    ...(await contents(kube)).map(remove),
    ...(await ofStorage(kube)),
    ...(await ourVolumes(kube)),
    ...(await movingClaims(kube)),
    ...(await ourNamespaces(kube, onlyWithPurge)),
    ...(await ourCrds(kube)).map((crd) => onlyWithPurge(customResourceDefinitions, crd)),
  ];
}

async function ofOurKinds(
  io: CliIo,
  kube: KubeClient,
  otherwise: (type: ResourceType, object: KubeObject) => OwnObject,
): Promise<OwnObject[]> {
  const found: OwnObject[] = [];
  for (const { group, version, kind, plural, namespaced } of allKinds) {
    const type: ResourceType = { group, version, kind, plural, namespaced };
    const goes = (object: KubeObject): boolean =>
      object.metadata.namespace === systemNamespace ||
      [...made, brokerLinks, peeringLocks].some((one) => isSame(one, type)) ||
      (isSame(trustedPeers, type) && !isDecided(object)) ||
      (isSame(peeringPolicies, type) && object.metadata.name === defaultPolicy);
    for (const object of await retryReads(io, kube).list<KubeObject>(type))
      found.push(goes(object) ? { type, object, fate: 'remove' } : otherwise(type, object));
  }
  return found;
}

/** An administrator, or a tool, wrote into it. */
const isDecided = (peer: KubeObject): boolean =>
  Object.keys((peer as KubeObject & { readonly spec?: object }).spec ?? {}).length > 0;

/** Nodes, pods and namespaces of others. */
async function marked(kube: KubeClient, purge: boolean): Promise<OwnObject[]> {
  const virtual = await kube.list<KubeObject>(nodes, `${label.type}=${virtualNodeType}`);
  const served = await kube.list<KubeObject>(nodes, nodeProcessLabel);
  const gated = [
    ...(await kube.list<KubeObject>(pods, isthmusLabel.gated)),
    ...(await kube.list<KubeObject>(pods, isthmusLabel.waitsForMove)),
  ];
  const offloaded = new Set((await kube.list(namespaceOffloadings)).map(({ metadata }) => metadata.namespace));
  const labelled = await kube.list<KubeObject>(namespaces, `${label.schedulingEnabled}=true`);
  return [
    ...virtual.map((object): OwnObject => ({ type: nodes, object, fate: 'remove' })),
    ...served.map((object): OwnObject => ({ type: nodes, object, fate: 'unmark', note: `label ${nodeProcessLabel}` })),
    ...gated.map((object): OwnObject => ({ type: pods, object, fate: 'unmark', note: 'scheduling gate' })),
    ...labelled
      .filter(({ metadata }) => offloaded.has(metadata.name))
      .map((object): OwnObject => {
        const note = `label ${label.schedulingEnabled}`;
        const base = { type: namespaces, object };
        return purge
          ? { ...base, fate: 'unmark', note }
          : { ...base, fate: 'keep', note: `its ${note} goes with --purge` };
      }),
  ];
}

interface Entry {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

/** Rights and certificates, wherever they stand. */
async function grantedRights(kube: KubeClient): Promise<Entry[]> {
  const found = new Map<string, Entry>();
  for (const type of [...rights, certificateSigningRequests as ResourceType])
    for (const selector of selectors)
      for (const object of await kube.list(type, selector))
        found.set(`${type.plural} ${object.metadata.namespace ?? ''}/${object.metadata.name}`, { type, object });
  return [...found.values()];
}

/** What stands in the system namespace of its own accord: it all goes with it. */
async function contents(kube: KubeClient): Promise<Entry[]> {
  const lists = inSystemNamespace.map(async (type) =>
    (await kube.list(type, undefined, systemNamespace))
      .filter(({ metadata }) => !metadata.ownerReferences?.length)
      .filter(({ metadata }) => !ofKubernetes.has(`${type.kind}/${metadata.name}`))
      .map((object) => ({ type, object })),
  );
  return (await Promise.all(lists)).flat();
}

/** What is said of free storage goes; real claims have the data of volumes that are used on. */
async function ofStorage(kube: KubeClient): Promise<OwnObject[]> {
  const [classes, drivers, capacities, own, claims] = await Promise.all([
    kube.list<StorageClass>(storageClasses),
    kube.list<KubeObject>(csiDrivers, installSelector),
    kube.list<KubeObject>(csiStorageCapacities, `${driverLabel}=${remoteVolumeDriver}`, storageNamespace),
    kube.get<KubeObject>(namespaces, { name: storageNamespace }),
    kube.list<KubeObject>(persistentVolumeClaims, undefined, storageNamespace),
  ]);
  const remove = (type: ResourceType, objects: readonly KubeObject[]): OwnObject[] =>
    objects.map((object) => ({ type, object, fate: 'remove' }));
  const found = [
    ...remove(storageClasses, classes.filter(isInstalled)),
    ...remove(csiDrivers, drivers),
    ...remove(csiStorageCapacities, capacities),
  ];
  if (own === undefined) return found;
  const base = { type: namespaces, object: own };
  const note = `${claims.length} claims in it have the data of volumes in this cluster`;
  return [...found, claims.length > 0 ? { ...base, fate: 'keep', note } : { ...base, fate: 'remove' }];
}

/** They have the data of claims, or stand for it: they stay, and what the agent would have taken off goes now. */
async function ourVolumes(kube: KubeClient): Promise<OwnObject[]> {
  const all = await kube.list<PersistentVolume>(persistentVolumes);
  return all.filter(isOurVolume).map((object): OwnObject => {
    const { namespace, name } = object.spec?.claimRef ?? {};
    return object.metadata.finalizers?.includes(volumeFinalizer)
      ? { type: persistentVolumes, object, fate: 'unmark', note: `finalizer ${volumeFinalizer}` }
      : { type: persistentVolumes, object, fate: 'keep', note: `the volume of claim ${namespace}/${name}` };
  });
}

/** Whose move is under way. */
async function movingClaims(kube: KubeClient): Promise<OwnObject[]> {
  const all = await kube.list<KubeObject>(persistentVolumeClaims);
  return all
    .filter(
      ({ metadata }) =>
        metadata.finalizers?.includes(moveFinalizer) || metadata.annotations?.[storageAnnotation.moving] !== undefined,
    )
    .map((object) => ({ type: persistentVolumeClaims, object, fate: 'unmark', note: 'the marks of its move' }));
}

async function ourNamespaces(
  kube: KubeClient,
  onlyWithPurge: (type: ResourceType, object: KubeObject) => OwnObject,
): Promise<OwnObject[]> {
  const own = await kube.get<KubeObject>(namespaces, { name: systemNamespace });
  const ofPeers = await kube.list<KubeObject>(namespaces, label.remoteClusterId);
  const isTenants = ({ metadata }: KubeObject): boolean => metadata.labels?.[label.tenantNamespace] !== undefined;
  return [
    ...ofPeers.filter(isTenants).map((object) => onlyWithPurge(namespaces, object)),
    ...ofPeers
      .filter((object) => !isTenants(object))
      .map((object): OwnObject => {
        const note = `pods of ${object.metadata.labels?.[label.remoteClusterId]} ran in it; delete it when they are not needed`;
        return { type: namespaces, object, fate: 'keep', note };
      }),
    ...(own === undefined ? [] : [{ type: namespaces, object: own, fate: 'remove' } as const]),
  ];
}

const ourCrds = async (kube: KubeClient): Promise<KubeObject[]> => {
  const names = new Set(allKinds.map(crdName));
  return (await kube.list<KubeObject>(customResourceDefinitions)).filter(({ metadata }) => names.has(metadata.name));
};

export const isKept = ({ fate }: OwnObject): boolean => fate === 'keep';

/** `KIND NAMESPACE/NAME`. */
export const nameOf = ({ type, object }: OwnObject): string => `${type.kind} ${textOf(refOf(object))}`;

const textOf = ({ namespace, name }: ObjectRef): string => (namespace === undefined ? name : `${namespace}/${name}`);

const saysOf: Readonly<Record<Fate, string>> = { remove: 'removed', unmark: 'loses', keep: 'kept' };

/** With what happens, or has happened, to each. */
export const printed = (objects: readonly OwnObject[]): string =>
  table(objects, [
    { head: 'kind', cell: ({ type }) => type.kind },
    { head: 'namespace', cell: ({ object }) => object.metadata.namespace ?? '-' },
    { head: 'name', cell: ({ object }) => object.metadata.name },
    {
      head: 'what happens',
      cell: ({ fate, note }) => [saysOf[fate], note].filter(Boolean).join(fate === 'keep' ? ': ' : ' '),
    },
  ]);

/** Printed at the end. */
export const leftText = (kept: readonly OwnObject[]): string =>
  kept.length === 0 ? 'nothing of it is left\n' : `left in the cluster:\n${printed(kept)}`;
