/** Takes the agent out of a cluster. What is absent already is fine. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { Step } from '#cli/output/progress.ts';
import {
  deployments,
  mutatingWebhookConfigurations,
  namespaces,
  pods,
  validatingWebhookConfigurations,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import { label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { poll, typeOf } from './apply.ts';
import { agentManifests, agentName, controllerLabels, type InstallOptions, webhookService } from './manifests.ts';
import { unmarkServed } from './node-process.ts';
import { removeFabric, removeNetworkObjects } from './remove-network.ts';

interface Webhooks extends KubeObject {
  readonly webhooks?: readonly {
    readonly clientConfig?: { readonly service?: { readonly namespace?: string; readonly name?: string } };
  }[];
}

const pointsHere = (object: KubeObject): boolean =>
  ((object as Webhooks).webhooks ?? []).some(
    ({ clientConfig }) =>
      clientConfig?.service?.namespace === systemNamespace && clientConfig.service.name === webhookService,
  );

/** For the names of what is installed. Networks are found by their kind. */
const anyOptions: InstallOptions = {
  clusterId: 'any',
  image: '',
  apiServerUrl: '',
  replicas: 1,
  network: {
    ranges: {
      podCidrs: [],
      serviceCidr: '',
      externalCidr: '',
      internalCidr: '',
      reservedSubnets: [],
      fixed: { external: false, internal: false },
    },
  },
};

export interface Removal {
  /** Also the CRDs, and with them every object of those kinds. */
  readonly purge: boolean;
  readonly timeoutMs: number;
}

/** While the agent still runs: whatever finalizers are left in them are its own. */
export async function removeTenantNamespaces(
  io: CliIo,
  kube: KubeClient,
  timeoutMs: number,
  step: Step,
): Promise<void> {
  const selector = `${label.tenantNamespace}=true`;
  let left = await kube.list(namespaces, selector);
  await Promise.all(left.map((namespace) => kube.delete(namespaces, refOf(namespace))));
  await poll(
    io,
    timeoutMs,
    async () => {
      left = await kube.list(namespaces, selector);
      step.update(left.map(({ metadata }) => metadata.name).join(', '));
      return left.length === 0 ? true : undefined;
    },
    () =>
      new AppError(
        'deadline_exceeded',
        `the tenant namespaces ${left.map(({ metadata }) => metadata.name).join(', ')} do not go away`,
        { detail: { remedy: 'see what is left in them: kubectl get liqo -n NAMESPACE' } },
      ),
  );
}

export async function removeAgent(
  io: CliIo,
  kube: KubeClient,
  { purge, timeoutMs }: Removal,
  step: Step,
): Promise<void> {
  step.update('webhooks');
  for (const type of [mutatingWebhookConfigurations, validatingWebhookConfigurations]) {
    const ours = (await kube.list<KubeObject>(type)).filter(pointsHere);
    await Promise.all(ours.map((object) => kube.delete(type, refOf(object))));
  }
  await removeFabric(io, kube, timeoutMs, step);
  step.update('agent');
  await kube.delete(deployments, { namespace: systemNamespace, name: agentName });
  const selector = Object.entries(controllerLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
  await poll(
    io,
    timeoutMs,
    async () => ((await kube.list(pods, selector)).length === 0 ? true : undefined),
    () =>
      new AppError('deadline_exceeded', 'the pods of the agent do not end', {
        detail: { remedy: 'look at the nodes of the cluster, then repeat' },
      }),
  );

  await unmarkServed(kube);
  await removeNetworkObjects(io, kube, step);
  const all = agentManifests({ ...anyOptions, joinToken: '' });
  const crds = all.filter(({ kind }) => kind === 'CustomResourceDefinition');
  const rest = all.filter(({ kind }) => kind !== 'CustomResourceDefinition').reverse();
  for (const link of await kube.list<KubeObject>(brokerLinks)) await kube.delete(brokerLinks, refOf(link));
  for (const object of rest) {
    step.update(`${object.kind} ${object.metadata.name}`);
    await kube.delete(typeOf(object), refOf(object));
  }
  if (purge) {
    step.update('custom resource definitions');
    await Promise.all(crds.map((crd) => kube.delete(typeOf(crd), refOf(crd))));
  }
  step.update(`namespace ${systemNamespace}`);
  await poll(
    io,
    timeoutMs,
    async () => ((await kube.get(namespaces, { name: systemNamespace })) === undefined ? true : undefined),
    () =>
      new AppError('deadline_exceeded', `the namespace ${systemNamespace} does not go away`, {
        detail: { remedy: `see what is left in it: kubectl get all -n ${systemNamespace}` },
      }),
  );
}
