/**
 * The drill: a consumer with its kubeconfigs at a real API server. First what the API server says that it may do, for each verb of each kind in each
 * namespace; then requests of every sort that must be refused. `DRILL_TABLE=1` prints what docs/security.md has as a table.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isAllowed, type ResourceAttributes } from '#kube/http/access-review.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { clusterRoles, configMaps, namespaces, pods, roleBindings, secrets } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { foreignNamespaces, type Who } from './attempt.ts';
import { allAttempts } from './attempts.ts';
import { guest, identity, inParallel } from './hosted-consumers.ts';

let under: WebhookCluster;
let admin: KubeApi;
let apis: Readonly<Record<Who, KubeApi>>;
const stop = new AbortController();

beforeAll(async () => {
  under = await startWebhookCluster();
  admin = under.cluster.api;
  for (const role of remoteRoles()) await admin.create(clusterRoles, role);
  const resources = { cpu: '100', memory: '100Gi', pods: '50' };
  for (const consumer of ['cons', 'other'] as const)
    await guest(under, { consumer, slice: `slice-${consumer}`, resources });
  const [kubelet, controlPlane] = [
    await identity(under, ['slice-cons', 'cons'], stop.signal),
    await identity(under, ['cons', 'liqo.io'], stop.signal),
  ];
  apis = { kubelet, controlPlane };
  await until(() => kubelet.list(shadowPods, { namespace: 'apps-cons' }));
  await until(() => controlPlane.list(resourceSlices, { namespace: 'liqo-tenant-cons' }));
}, 900_000);
afterAll(async () => {
  stop.abort();
  await under?.stop();
});

const callers = {
  kubelet: { user: 'slice-cons', groups: ['cons', 'system:authenticated'] },
  controlPlane: { user: 'cons', groups: ['liqo.io', 'system:authenticated'] },
  /** Of its pods at the provider: the account of its namespace. */
  'account of its pods': {
    user: 'system:serviceaccount:apps-cons:default',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:apps-cons', 'system:authenticated'],
  },
} as const;
type Caller = keyof typeof callers;

const verbs = ['get', 'list', 'create', 'update', 'patch', 'delete'];
const resources = [
  ...[
    'pods',
    'pods/log',
    'pods/exec',
    'pods/attach',
    'pods/portforward',
    'pods/eviction',
    'pods/binding',
    'pods/status',
  ],
  ...[
    'configmaps',
    'secrets',
    'services',
    'endpoints',
    'persistentvolumeclaims',
    'persistentvolumes',
    'events',
    'nodes',
    'nodes/proxy',
  ],
  ...[
    'namespaces',
    'serviceaccounts',
    'serviceaccounts/token',
    'resourcequotas',
    'limitranges',
    'apps/deployments',
    'apps/daemonsets',
  ],
  ...[
    'batch/jobs',
    'networking.k8s.io/ingresses',
    'networking.k8s.io/networkpolicies',
    'discovery.k8s.io/endpointslices',
  ],
  ...['coordination.k8s.io/leases', 'rbac.authorization.k8s.io/roles', 'rbac.authorization.k8s.io/rolebindings'],
  ...['rbac.authorization.k8s.io/clusterrolebindings', 'certificates.k8s.io/certificatesigningrequests'],
  ...['admissionregistration.k8s.io/validatingwebhookconfigurations', 'metrics.k8s.io/pods', 'metrics.k8s.io/nodes'],
  ...[
    'offloading.liqo.io/shadowpods',
    'offloading.liqo.io/shadowpods/status',
    'offloading.liqo.io/shadowendpointslices',
  ],
  ...['offloading.liqo.io/namespacemaps', 'offloading.liqo.io/namespacemaps/status', 'offloading.liqo.io/quotas'],
  ...[
    'offloading.liqo.io/virtualnodes',
    'offloading.liqo.io/namespaceoffloadings',
    'authentication.liqo.io/resourceslices',
  ],
  ...[
    'authentication.liqo.io/resourceslices/status',
    'authentication.liqo.io/renews',
    'authentication.liqo.io/tenants',
  ],
  ...['authentication.liqo.io/identities', 'networking.liqo.io/configurations', 'networking.liqo.io/publickeys'],
  ...['networking.liqo.io/gatewayservers', 'ipam.liqo.io/ips', 'ipam.liqo.io/networks', 'isthmus.dev/peeringpolicies'],
  ...['isthmus.dev/trustedpeers', 'isthmus.dev/peeringlocks', 'isthmus.dev/peerings', 'isthmus.dev/retainedvolumes'],
] as const;

function attributesOf(what: string): Pick<ResourceAttributes, 'group' | 'resource' | 'subresource'> {
  const parts = what.split('/');
  const group = parts[0]?.includes('.') || ['apps', 'batch'].includes(parts[0] ?? '') ? parts.shift() : undefined;
  const [resource = '', subresource] = parts;
  return { resource, ...(group && { group }), ...(subresource && { subresource }) };
}

/** All that a consumer may do, written out: `verbs resource` by caller and namespace. */
const all = ['get', 'list', 'create', 'update', 'patch', 'delete'];
const may: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'kubelet in apps-cons': {
    ...{ 'offloading.liqo.io/shadowpods': all, 'offloading.liqo.io/shadowendpointslices': all },
    ...{
      configmaps: all,
      secrets: all,
      services: all,
      persistentvolumeclaims: all,
      'networking.k8s.io/ingresses': all,
    },
    ...{ pods: ['get', 'list'], 'metrics.k8s.io/pods': ['get', 'list'], events: ['get', 'list'], 'pods/log': ['get'] },
    ...{ 'pods/exec': ['get', 'create'], 'pods/attach': ['get', 'create'], 'pods/portforward': ['get', 'create'] },
  },
  'controlPlane in liqo-tenant-cons': {
    ...{ 'authentication.liqo.io/resourceslices': all, 'authentication.liqo.io/renews': all },
    ...{ 'offloading.liqo.io/namespacemaps': all },
  },
};

test('of every verb of every kind in every namespace the API server lets a consumer do what it needs, and nothing else', async () => {
  const places = ['apps-cons', 'liqo-tenant-cons', ...foreignNamespaces, ''];
  const questions = (Object.keys(callers) as Caller[]).flatMap((who) =>
    places.flatMap((namespace) => resources.flatMap((what) => verbs.map((verb) => ({ who, namespace, what, verb })))),
  );
  const wrong: string[] = [];
  const granted = new Map<string, number>();
  await inParallel(questions.length, async (i) => {
    const question = questions[i];
    if (question === undefined) return;
    const { who, namespace, what, verb } = question;
    const place = `${who} in ${namespace || 'the cluster'}`;
    const attributes = { ...attributesOf(what), verb, ...(namespace && { namespace }) };
    const isGranted = await isAllowed(admin, callers[who], attributes);
    if (isGranted) granted.set(place, (granted.get(place) ?? 0) + 1);
    if (isGranted !== (may[place]?.[what]?.includes(verb) ?? false))
      wrong.push(`${place}: ${verb} ${what} is ${isGranted ? 'allowed' : 'refused'}`);
  });
  expect(wrong.sort()).toEqual([]);
  if (process.env.DRILL_TABLE === '1')
    process.stdout.write(`${questions.length} questions, allowed: ${JSON.stringify(Object.fromEntries(granted))}\n`);
}, 600_000);

async function provider(): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  const kinds = [pods, secrets, configMaps, namespaces, roleBindings, clusterRoles, shadowPods, quotas, resourceSlices];
  for (const type of kinds as readonly ResourceType[]) {
    for (const object of await admin.list<KubeObject>(type as ResourceType<KubeObject>)) {
      const { namespace = '', name, uid, labels, annotations } = object.metadata;
      seen[`${type.kind} ${namespace}/${name}`] = JSON.stringify([uid, labels, annotations]);
    }
  }
  return seen;
}

test('more than two hundred requests that reach for more are refused, each with a reason, and change nothing', async () => {
  const attempts = allAttempts();
  expect(attempts.length).toBeGreaterThanOrEqual(200);
  const before = await provider();
  const accepted: string[] = [];
  const unexplained: string[] = [];
  const table = new Map<string, { tried: number; byRights: number }>();
  for (const { about, what, who, act } of attempts) {
    const row = table.get(about) ?? { tried: 0, byRights: 0 };
    table.set(about, row);
    row.tried += 1;
    const error: unknown = await act(apis[who]).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (error === undefined) accepted.push(`${about}: ${what} (${who})`);
    else if (!/^kube_(forbidden|invalid)$/.test(codeOf(error) ?? '')) unexplained.push(`${what}: ${messageOf(error)}`);
    if (/cannot \w+ resource/.test(messageOf(error))) row.byRights += 1;
  }
  expect({ accepted, unexplained }).toEqual({ accepted: [], unexplained: [] });
  const after = await provider();
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => before[key] !== after[key],
  );
  expect(changed).toEqual([]);
  if (process.env.DRILL_TABLE === '1')
    for (const [about, { tried, byRights }] of table)
      process.stdout.write(`| ${about} | ${tried} | ${byRights} | ${tried - byRights} |\n`);
}, 300_000);
