/** Looks at one cluster, with a deadline for the whole and a note of everything that could not be read. Changes nothing. */
import type { KubeTarget } from '#cli/cluster/kubeconfig-files.ts';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { typeOf } from '#cli/install/apply.ts';
import { controllerLabels } from '#cli/install/manifests.ts';
import { ourConfigurations } from '#cli/install/webhooks.ts';
import { readSide, type Side } from '#cli/network-test/side.ts';
import type { CliIo } from '#cli/output/io.ts';
import { clockDifference } from '#cli/preflight/observe.ts';
import { readObjects } from '#cli/status/read.ts';
import type { ClusterObjects } from '#cli/status/summary.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import {
  type CoreEvent,
  configMaps,
  coreEvents,
  customResourceDefinitions,
  daemonSets,
  deployments,
  endpointSlices,
  namespaces,
  nodes,
  pods,
  roleBindings,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import { type KubeObject, type Pod, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import {
  admission,
  label,
  managedByShadowPod,
  namespaceOffloadingName,
  systemNamespace,
  virtualNodeType,
} from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { remoteRoleName } from '#shared/domain/remote-roles.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { claimantsIn } from './claimants.ts';
import { crdsOtherThan, rightsOtherThan, wantedRights } from './compare.ts';
import { certificatesOf, credentialOf } from './credentials.ts';
import type { ClusterFacts, LinkObjects, Looked, TrafficPolicy, Unread, WebhookFacts } from './facts.ts';
import { lookIntoGateways, lookIntoNodes } from './node-sights.ts';
import { ownPodsOf, tenantNamespacesOf } from './own-pods.ts';

const networkPolicies: ResourceType<TrafficPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
};

/** So many peers are looked at in depth. */
const mostSides = 8;
const eventsKept = 200;

/** Fails only where the kubeconfig itself cannot be read. */
export async function lookAt(io: CliIo, target: KubeTarget, withinMs: number): Promise<Looked> {
  const signal = abortsWith(io.signal, AbortSignal.timeout(withinMs));
  const kube = await openCluster(target, { clock: io.clock, signal });
  const kubectl = `kubectl --kubeconfig ${target.kubeconfig}${target.context === undefined ? '' : ` --context ${target.context}`}`;
  const base = { cluster: kube.server, server: kube.server, kubectl, unread: [] };
  try {
    await kube.version();
  } catch (error) {
    io.signal.throwIfAborted();
    return { ...base, installed: true, silent: { code: codeOf(error), message: messageOf(error) } };
  }
  const unread: Unread[] = [];
  const part = async <T>(what: string, otherwise: T, ask: () => Promise<T>): Promise<T> => {
    try {
      return await ask();
    } catch (error) {
      io.signal.throwIfAborted();
      const code = codeOf(error);
      unread.push({ what, ...(code !== undefined && { code }), message: messageOf(error) });
      return otherwise;
    }
  };
  const status = await part<ClusterObjects | undefined>('the objects of `isthmus status`', undefined, () =>
    readObjects(kube),
  );
  if (status?.clusterId === undefined) return { ...base, installed: status === undefined, unread };
  const facts = await read(io, kube, target, status, part, signal);
  return { ...base, cluster: status.clusterId, installed: true, unread, facts };
}

type Part = <T>(what: string, otherwise: T, ask: () => Promise<T>) => Promise<T>;

async function read(
  io: CliIo,
  kube: KubeClient,
  target: KubeTarget,
  status: ClusterObjects,
  part: Part,
  signal: AbortSignal,
): Promise<ClusterFacts> {
  const list = <T extends KubeObject>(type: ResourceType<T>, selector?: string, namespace?: string): Promise<T[]> =>
    part(`${type.plural}${namespace === undefined ? '' : ` of ${namespace}`}`, [], () =>
      kube.list(type, selector, namespace),
    );
  const own = status.clusterId ?? '';
  const peers = status.peers.map(({ spec }) => spec.clusterID).slice(0, mostSides);
  const [allNodes, allNamespaces, credentials, bindings, controllers, liqo, nodeProcess, clockAheadMs] =
    await Promise.all([
      list(nodes),
      list(namespaces),
      list(secrets, label.identityType),
      list(roleBindings, label.remoteClusterId),
      list(deployments, selectorOf(controllerLabels)),
      list(deployments, 'app.kubernetes.io/name=controller-manager'),
      part('the DaemonSet of node processes', undefined, () =>
        kube.get(daemonSets, { namespace: systemNamespace, name: fabricName }),
      ),
      part('the clock', undefined, () => clockDifference(io, kube)),
    ]);
  const tenantNamespaces = tenantNamespacesOf(allNamespaces);
  const offloaded = status.offloadings.map(({ metadata }) => metadata.namespace ?? '');
  const mapped = allNamespaces
    .filter(({ metadata }) => metadata.labels?.[label.remoteClusterId] !== undefined)
    .map(nameOf);
  const ofOurs = [systemNamespace, ...new Set([...tenantNamespaces, ...offloaded, ...mapped])].slice(0, 50);
  const [rights, crds, webhooks, rootCa, dns, link, sides, events, policies, ownPods, work, guests] = await Promise.all(
    [
      part('the rights of the agent', [], async () =>
        rightsOtherThan(await Promise.all(wantedRights.map((one) => kube.get(typeOf(one), refOf(one))))),
      ),
      part('CustomResourceDefinitions', [], async () => crdsOtherThan(await kube.list(customResourceDefinitions))),
      part<WebhookFacts>('webhooks', { registered: true }, () => askWebhooks(kube)),
      part('the CA', undefined, () => kube.get(configMaps, { namespace: 'kube-system', name: 'kube-root-ca.crt' })),
      part('DNS', undefined, () => readDns(kube)),
      readLinks(kube, part),
      Promise.all(
        peers.map((one) => part<Side | undefined>(`the network to ${one}`, undefined, () => readSide(kube, own, one))),
      ),
      Promise.all(ofOurs.map((namespace) => list(coreEvents, undefined, namespace))),
      Promise.all(
        [systemNamespace, ...tenantNamespaces].map((namespace) => list(networkPolicies, undefined, namespace)),
      ),
      ownPodsOf(list, tenantNamespaces),
      Promise.all(offloaded.map((namespace) => list(pods, undefined, namespace))),
      list(pods, `${label.managedBy}=${managedByShadowPod}`),
    ],
  );
  const claimants = await part('what reports as virtual nodes', [], async () =>
    claimantsIn(
      await kube.path(`/api/v1/nodes?labelSelector=${encodeURIComponent(`${label.type}=${virtualNodeType}`)}`),
    ),
  );
  const waiting = await part<Pod[]>('pods that wait for a node', [], () => unscheduledPods(kube));
  const [identityList, tenantList, slices, terms] = await Promise.all([
    list(identities),
    list(tenants),
    list(resourceSlices),
    list(peeringPolicies),
  ]);
  const [sights, gatewaySights] = await Promise.all([
    lookIntoNodes(target, ownPods, signal),
    lookIntoGateways(target, { ownPods, connections: link.connections }, signal),
  ]);
  const agent = status.agent?.spec?.template.spec?.containers?.[0];
  const apiServerUrl = agent?.env?.find(({ name }) => name === 'ISTHMUS_API_SERVER_URL')?.value;
  return {
    status,
    ...(apiServerUrl !== undefined && { apiServerUrl }),
    ownCas: certificatesOf(rootCa?.data?.['ca.crt'] ?? ''),
    ...(clockAheadMs !== undefined && { clockAheadMs }),
    nodes: allNodes.filter((node) => !isVirtualNode(node)),
    virtualNodes: allNodes.filter(isVirtualNode),
    claimants,
    namespaces: allNamespaces,
    agents: [
      ...new Map([...controllers, ...liqo].map((one) => [`${one.metadata.namespace}/${nameOf(one)}`, one])).values(),
    ],
    nodeProcess,
    ownPods,
    events: newestFirst(events.flat()),
    crds,
    rights,
    webhooks,
    policies: policies.flat(),
    ...(dns !== undefined && { dns }),
    link,
    sides: Object.fromEntries(sides.flatMap((side) => (side === undefined ? [] : [[side.peer, side]]))),
    credentials: credentials.map(credentialOf),
    identities: identityList,
    tenants: tenantList,
    guestTolerations: terms.flatMap(({ spec }) => spec.asProvider?.guests?.tolerations ?? []),
    slices,
    consumerRights: rightsOfConsumers(
      tenantList.map(({ spec, metadata }) => [spec.clusterID, metadata.namespace ?? '']),
      bindings,
    ),
    pods: distinct([...work.flat(), ...guests, ...waiting]),
    sights,
    gatewaySights,
  };
}

const nameOf = ({ metadata }: KubeObject): string => metadata.name;
const selectorOf = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join();

const distinct = (all: readonly Pod[]): Pod[] => [
  ...new Map(all.map((pod) => [`${pod.metadata.namespace}/${pod.metadata.name}`, pod])).values(),
];

const timeOf = ({ lastTimestamp, eventTime, metadata }: CoreEvent): string =>
  lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '';
const newestFirst = (events: readonly CoreEvent[]): CoreEvent[] =>
  events
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))
    .slice(0, eventsKept);

/** A few hundred at most: what waits in the whole cluster, by the one field selector that narrows it down. */
async function unscheduledPods(kube: KubeClient): Promise<Pod[]> {
  const text = await kube.path('/api/v1/pods?fieldSelector=spec.nodeName%3D%2Cstatus.phase%3DPending&limit=200');
  return (JSON.parse(text) as { items?: Pod[] }).items ?? [];
}

/** A NamespaceOffloading in `default`, tried and never stored: every registration of ours concerns it. */
async function askWebhooks(kube: KubeClient): Promise<WebhookFacts> {
  const configurations = await ourConfigurations(kube);
  if (configurations.length === 0) return { registered: false };
  const said = await kube.refusalOf(namespaceOffloadings, {
    apiVersion: `${namespaceOffloadings.group}/${namespaceOffloadings.version}`,
    kind: namespaceOffloadings.kind,
    metadata: { name: namespaceOffloadingName, namespace: 'default' },
    spec: {},
  } as KubeObject);
  // Where API servers call the agent by URL there is no Service in between.
  const byService = configurations.some(({ object }) =>
    JSON.stringify(object).includes(`"name":"${admission.service}"`),
  );
  return {
    registered: true,
    ...(said !== undefined && /failed calling webhook/.test(said) && { failure: said }),
    ...(byService && { service: await readWebhookService(kube) }),
  };
}

async function readWebhookService(kube: KubeClient): Promise<NonNullable<WebhookFacts['service']>> {
  const [service, endpoints] = await Promise.all([
    kube.get(services, { namespace: systemNamespace, name: admission.service }),
    readyEndpoints(kube, systemNamespace, admission.service),
  ]);
  return { selector: service && selectorOf(service.spec?.selector ?? {}), endpoints };
}

async function readyEndpoints(kube: KubeClient, namespace: string, service: string): Promise<number> {
  const slices = await kube.list(endpointSlices, `kubernetes.io/service-name=${service}`, namespace);
  // A slice without endpoints has null there.
  const endpoints = slices.flatMap((slice) => slice.endpoints ?? []);
  return endpoints.filter(({ conditions }) => conditions?.ready !== false).length;
}

async function readDns(kube: KubeClient): Promise<ClusterFacts['dns'] | undefined> {
  const within = { namespace: 'kube-system', name: 'kube-dns' };
  const [service, ready, running] = await Promise.all([
    kube.get(services, within),
    readyEndpoints(kube, within.namespace, within.name),
    kube.list(pods, 'k8s-app=kube-dns', within.namespace),
  ]);
  if (service === undefined) return undefined;
  const why =
    running.length === 0
      ? 'there is no pod with the label k8s-app=kube-dns'
      : running.map(({ metadata, status }) => `pod ${metadata.name} is ${status?.phase ?? 'unknown'}`).join(', ');
  return { ready, why };
}

async function readLinks(kube: KubeClient, part: Part): Promise<LinkObjects> {
  const list = <T extends KubeObject>(type: ResourceType<T>): Promise<T[]> =>
    part(type.plural, [], () => kube.list(type));
  const [configurations, servers, clients, connections, publicKeys] = await Promise.all([
    list(networkKinds.configurations),
    list(networkKinds.gatewayServers),
    list(networkKinds.gatewayClients),
    list(networkKinds.connections),
    list(networkKinds.publicKeys),
  ]);
  const keys = await Promise.all(
    [...servers, ...clients].map(async ({ metadata, status }) => {
      const { name, namespace } = status?.secretRef ?? {};
      const peer = metadata.labels?.[label.remoteClusterId];
      if (peer === undefined || !name || !namespace) return [];
      const secret = await part(`the key of gateway ${metadata.name}`, undefined, () =>
        kube.get(secrets, { namespace, name }),
      );
      return secret?.data?.publicKey === undefined ? [] : [[peer, secret.data.publicKey] as const];
    }),
  );
  return { configurations, servers, clients, connections, publicKeys, ownKeys: Object.fromEntries(keys.flat()) };
}

type Binding = KubeObject & { readonly roleRef?: { readonly name?: string } };

function rightsOfConsumers(
  consumers: readonly (readonly [consumer: string, namespace: string])[],
  bindings: readonly Binding[],
): ClusterFacts['consumerRights'] {
  const wanted = `liqo-${remoteRoleName.controlPlane}`;
  return Object.fromEntries(
    consumers.map(([consumer, namespace]) => {
      const has = bindings.some(
        ({ metadata, roleRef }) => metadata.namespace === namespace && roleRef?.name === wanted,
      );
      return [consumer, has ? [] : [`no RoleBinding of ${wanted} in namespace ${namespace}`]];
    }),
  );
}
