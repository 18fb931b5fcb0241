/**
 * The registration of the agent's webhooks, as seen from outside. It fails closed: once nothing answers any more, the API server refuses
 * pods of offloaded namespaces and our own objects. So it goes before the agent does, and what an agent left behind goes before anything is
 * written.
 */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import {
  clusterRoles,
  deployments,
  mutatingWebhookConfigurations,
  services,
  validatingWebhookConfigurations,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { admission, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { agentName } from './manifests.ts';

interface Webhooks extends KubeObject {
  readonly webhooks?: readonly {
    readonly clientConfig?: { readonly service?: { readonly namespace?: string; readonly name?: string } };
  }[];
}

export interface Configuration {
  readonly type: ResourceType;
  readonly object: KubeObject;
}

/** By its Service; where API servers call the agent by URL, by name and label. */
const isOurs = (object: Webhooks): boolean =>
  (object.webhooks ?? []).some(
    ({ clientConfig }) =>
      clientConfig?.service?.namespace === systemNamespace && clientConfig.service.name === admission.service,
  ) ||
  (object.metadata.name === admission.configuration && object.metadata.labels?.[admission.label] === 'true');

export async function ourConfigurations(kube: KubeClient): Promise<Configuration[]> {
  const found: Configuration[] = [];
  for (const type of [mutatingWebhookConfigurations, validatingWebhookConfigurations] as readonly ResourceType[])
    found.push(...(await kube.list(type)).filter(isOurs).map((object) => ({ type, object })));
  return found;
}

async function removeConfigurations(kube: KubeClient): Promise<number> {
  const found = await ourConfigurations(kube);
  for (const { type, object } of found) await kube.delete(type, refOf(object));
  return found.length;
}

const admissionGroup = 'admissionregistration.k8s.io';
const reading = new Set(['get', 'list', 'watch']);

/** How long an API server may take to hear of a changed role. */
const heardWithinMs = 10_000;
const lookAgainMs = 100;

const accessReviews: ResourceType = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SubjectAccessReview',
  plural: 'subjectaccessreviews',
  namespaced: false,
};

async function mayRegister(kube: KubeClient): Promise<boolean> {
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: accessReviews.kind,
    metadata: { name: '' },
    spec: {
      user: `system:serviceaccount:${systemNamespace}:${agentName}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${systemNamespace}`, 'system:authenticated'],
      resourceAttributes: { group: admissionGroup, resource: mutatingWebhookConfigurations.plural, verb: 'patch' },
    },
  };
  const { status } = (await kube.create<KubeObject>(accessReviews, review)) as { status?: { allowed?: boolean } };
  return status?.allowed === true;
}

/**
 * Takes the registration away from an agent that may still run and would put it back: first its right to do so. From then on pods are made as
 * if the agent were not there. `install` and `join` give the right back. An agent with that right from elsewhere loses only what it has
 * registered until now: look again once it has ended.
 */
export async function unregister(io: CliIo, kube: KubeClient): Promise<void> {
  const role = await kube.get(clusterRoles, { name: agentName });
  const rules = role?.rules ?? [];
  const isWriting = (rule: (typeof rules)[number]): boolean =>
    (rule.apiGroups ?? []).includes(admissionGroup) && rule.verbs.some((verb) => !reading.has(verb));
  if (rules.some(isWriting)) {
    const less = rules.map((rule) => (isWriting(rule) ? { ...rule, verbs: [...reading] } : rule));
    await kube.mergePatch(clusterRoles, { name: agentName }, { rules: less });
    const deadline = io.clock.now() + heardWithinMs;
    while ((await mayRegister(kube)) && io.clock.now() < deadline) await io.clock.sleep(lookAgainMs, io.signal);
  }
  await removeConfigurations(kube);
}

/** Why nothing answers the webhooks that are registered; undefined: an agent is installed that does, or nothing is registered. */
async function orphaned(kube: KubeClient): Promise<string | undefined> {
  if ((await ourConfigurations(kube)).length === 0) return undefined;
  const within = { namespace: systemNamespace };
  const [service, agent] = await Promise.all([
    kube.get(services, { ...within, name: admission.service }),
    kube.get(deployments, { ...within, name: agentName }),
  ]);
  if (service === undefined) return `there is no Service ${systemNamespace}/${admission.service}`;
  if (agent === undefined || agent.metadata.deletionTimestamp !== undefined)
    return `there is no Deployment ${systemNamespace}/${agentName}`;
  return undefined;
}

/** What an agent registered that is gone would refuse what is written next. Resolves with what was done, for people. */
export async function removeOrphanedWebhooks(kube: KubeClient): Promise<string | undefined> {
  const why = await orphaned(kube);
  if (why === undefined) return undefined;
  const count = await removeConfigurations(kube);
  return `removed ${count} webhook configurations that refused pods and objects: ${why} to answer them`;
}
