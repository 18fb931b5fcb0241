/** What an installation was before it was changed, so that it can be put back. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import { objectPath } from '#kube/http/paths.ts';
import { deployments } from '#shared/domain/core-kinds.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { installManager, pastWebhooks, typeOf } from './apply.ts';
import { hasVolumes } from './guest-claims.ts';
import { agentName } from './manifests.ts';
import { appliedBy } from './owned-fields.ts';

export interface Former {
  /** Image of its agent. */
  readonly image: string;
  /** In the order of applying, as they were applied. */
  readonly applied: readonly KubeObject[];
  /** Of what is to be applied, what was not there. */
  readonly absent: readonly KubeObject[];
}

const isCrd = ({ kind }: KubeObject): boolean => kind === 'CustomResourceDefinition';

async function managedObject(kube: KubeClient, object: KubeObject): Promise<KubeObject | undefined> {
  try {
    return JSON.parse(await kube.path(objectPath(typeOf(object), refOf(object)))) as KubeObject;
  } catch (error) {
    if (codeOf(error) === 'kube_not_found') return undefined;
    throw error;
  }
}

/**
 * What `manifests` are going to change. Undefined: there is nothing worth going back to, since no agent is available or this command did not
 * install it. CustomResourceDefinitions are left out: fields of stored objects would be lost with a former schema.
 */
export async function rememberFormer(kube: KubeClient, manifests: readonly KubeObject[]): Promise<Former | undefined> {
  const agent = await kube.get(deployments, { namespace: systemNamespace, name: agentName });
  const image = agent?.spec?.template.spec?.containers[0]?.image;
  if (image === undefined || (agent?.status?.availableReplicas ?? 0) === 0) return undefined;
  const applied: KubeObject[] = [];
  const absent: KubeObject[] = [];
  for (const object of manifests.filter((one) => !isCrd(one))) {
    const found = await managedObject(kube, object);
    if (found === undefined) absent.push(object);
    else {
      const before = appliedBy(found, installManager);
      if (before !== undefined) applied.push(before);
    }
  }
  return applied.some(({ kind }) => kind === 'Deployment') ? { image, applied, absent } : undefined;
}

/** Parameters of a StorageClass never change: one that has others goes first. Volumes and claims that name it stay. */
async function putBack(io: CliIo, kube: KubeClient, object: KubeObject): Promise<void> {
  const type = typeOf(object);
  try {
    await pastWebhooks(io, () => kube.apply(type, object, installManager));
  } catch (error) {
    if (codeOf(error) !== 'kube_invalid' || object.kind !== 'StorageClass') throw error;
    await kube.delete(type, refOf(object));
    await kube.apply(type, object, installManager);
  }
}

/** The objects as they were. What was made since is taken away by `removeAdded`. */
export async function putFormerBack(io: CliIo, kube: KubeClient, { applied }: Former): Promise<void> {
  for (const object of applied) await putBack(io, kube, object);
}

/** Last first, so that nothing is without what it needs. The namespace of real claims stays when the new agent has made volumes by then. */
export async function removeAdded(io: CliIo, kube: KubeClient, { absent }: Former): Promise<void> {
  for (const object of [...absent].reverse()) {
    const { kind, metadata } = object;
    if (kind === 'Namespace' && metadata.name === storageNamespace && (await hasVolumes(kube))) continue;
    await pastWebhooks(io, () => kube.delete(typeOf(object), refOf(object)));
  }
}
