/** Taking Isthmus out of a cluster and bringing it back, also killed between any two writes: the cluster works throughout. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mutatingConfiguration, validatingConfiguration } from '#agent/admission/configurations.ts';
import { capturedIo } from '#cli/captured-io.ts';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { type InstallOptions, install } from '#cli/commands/install.ts';
import { uninstall } from '#cli/commands/uninstall.ts';
import { typeOf } from '#cli/install/apply.ts';
import { objectsOfAgent } from '#cli/install/manifests.ts';
import { removeIsthmus } from '#cli/install/remove.ts';
import { createProgress } from '#cli/output/progress.ts';
import {
  deployments,
  mutatingWebhookConfigurations,
  pods,
  validatingWebhookConfigurations,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { casesOf, countOf } from '#test/harness/cases.ts';
import { eventually } from '#test/harness/eventually.ts';
import { waitUntilStable } from '#test/harness/wait-until-stable.ts';
import { everything } from '../whole-clusters/inventory.ts';
import { runWithCrash } from './crashing-client.ts';
import { type PlayedCluster, startPlayedCluster } from './simulated-kubelet.ts';

let cluster: PlayedCluster;
let kube: KubeClient;
let start: ReadonlyMap<string, string>;
const io = capturedIo({});
/** Offloaded while Isthmus is there. */
const offloaded = 'demo';
/** Labelled by hand. While the agent runs, its webhook refuses pods here: nothing says how they are to be offloaded. */
const labelled = 'labelled';

beforeAll(async () => {
  cluster = await startPlayedCluster();
  kube = await openCluster({ kubeconfig: cluster.server.kubeconfigPath }, io);
  await cluster.makeNamespace(offloaded);
  await cluster.makeNamespace(labelled, { 'liqo.io/scheduling-enabled': 'true' });
  start = await settled();
}, 900_000);
afterAll(async () => await cluster?.stop());

const installOptions = (more: Partial<InstallOptions> = {}): InstallOptions => ({
  kubeconfig: cluster.server.kubeconfigPath,
  clusterId: 'rome',
  apiServerUrl: cluster.server.url,
  labels: {},
  network: true,
  storage: true,
  podCidr: ['10.200.0.0/16'],
  reservedSubnet: [],
  ignoreCheck: [],
  rollback: false,
  timeout: '60s',
  ...more,
});
const installed = (through = kube, more: Partial<InstallOptions> = {}): Promise<void> =>
  install(io, through, installOptions(more));
const uninstallOptions = (more: { purge?: boolean; dryRun?: boolean } = {}) => ({
  kubeconfig: cluster.server.kubeconfigPath,
  timeout: '60s',
  ...more,
});
/** What `leave` and `uninstall` do once they have found nothing against it. */
const removed = (purge: boolean, through = kube) =>
  removeIsthmus(io, createProgress(io), through, { purge, timeoutMs: 60_000 });

const configurations = async (): Promise<KubeObject[]> => [
  ...(await kube.list<KubeObject>(mutatingWebhookConfigurations)),
  ...(await kube.list<KubeObject>(validatingWebhookConfigurations)),
];
const registered = () => eventually('the webhooks to be registered', async () => (await configurations()).length === 2);

/** Everything by name, without what is numbered, dated, or written by clocks and controllers of Kubernetes. */
async function objects(): Promise<Map<string, string>> {
  const ofTheMoment = new Set(['leases.coordination.k8s.io', 'nodes']);
  const found = await everything(cluster.api);
  return new Map(
    found.map(({ resource, object }) => {
      const { resourceVersion, uid, creationTimestamp, managedFields, ...metadata } =
        object.metadata as KubeObject['metadata'] & Record<string, unknown>;
      const { status, ...rest } = object as KubeObject & { status?: unknown };
      const text = ofTheMoment.has(resource) ? JSON.stringify(metadata.labels) : JSON.stringify({ ...rest, metadata });
      return [`${resource} ${metadata.namespace ?? ''}/${metadata.name}`, text];
    }),
  );
}

/** All objects once kube-controller-manager has put its own into each namespace and nothing changes any more. */
async function settled(): Promise<ReadonlyMap<string, string>> {
  await eventually('each namespace to have its account and its certificate authority', async () => {
    const names = (await kube.list<KubeObject>(namespacesType)).map(({ metadata }) => metadata.name);
    const now = await objects();
    return names.every(
      (name) => now.has(`configmaps ${name}/kube-root-ca.crt`) && now.has(`serviceaccounts ${name}/default`),
    );
  });
  const entries = await waitUntilStable('the cluster before the first installation', async () =>
    [...(await objects())].sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  return new Map(entries);
}

async function differences(): Promise<string[]> {
  const now = await objects();
  const all = [...new Set([...start.keys(), ...now.keys()])].sort();
  return all.flatMap((key) => {
    if (start.get(key) === now.get(key)) return [];
    return [
      !now.has(key) ? `- ${key}` : !start.has(key) ? `+ ${key}` : `~ ${key}: ${start.get(key)} -> ${now.get(key)}`,
    ];
  });
}

/** What differs from the start, once nothing does but what `may`: Kubernetes collects addresses of Services and the like in its own time. */
const onceCollected = (may?: RegExp): Promise<string[]> =>
  eventually(
    'nothing else to be left',
    async () => {
      const left = (await differences()).filter((line) => may === undefined || !/ apiservices\./.test(line));
      const more = left.filter((line) => !may?.test(line));
      if (more.length > 0) throw new Error(more.join('\n'));
      return left;
    },
    // A look lists everything that is served.
    { everyMs: 1_000 },
  );

/** Judged by all of admission; nothing is kept. An API server goes on asking webhooks for a moment after they are gone. */
const pod = (namespace: string): Promise<true> =>
  eventually(`a pod to be made in ${namespace}`, () => tryPod(namespace).then(() => true as const), {
    withinMs: 5_000,
  });

async function tryPod(namespace: string): Promise<void> {
  const spec = { containers: [{ name: 'app', image: 'app' }] };
  const object = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name: 'probe' }, spec };
  await cluster.api.apply(pods, object, { fieldManager: 'probe', dryRun: true });
}

/** As the agent registers where the API server reaches Services. */
async function leaveBehindWebhooks(): Promise<void> {
  const endpoint = { bundle: cluster.server.ca, secretPath: 'x', namespace: 'liqo' };
  await cluster.api.create(mutatingWebhookConfigurations, mutatingConfiguration(endpoint));
  await cluster.api.create(validatingWebhookConfigurations, validatingConfiguration(endpoint));
  await eventually('the API server to ask them', async () => {
    const refusal = await tryPod(labelled).catch((error: unknown) => (error as Error).message);
    return /failed calling webhook/.test(refusal ?? '');
  });
}

async function offload(): Promise<void> {
  const object = {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: { namespace: offloaded, name: 'offloading' },
    spec: { namespaceMappingStrategy: 'DefaultName', podOffloadingStrategy: 'LocalAndRemote' },
  };
  await eventually('the offloading to be accepted', () => kube.apply(namespaceOffloadings, object, 'test'));
  await eventually('the agent to label the namespace', async () => {
    const { metadata } = (await kube.get<KubeObject>(namespacesType, { name: offloaded })) ?? { metadata: undefined };
    return metadata?.labels?.['liqo.io/scheduling-enabled'] === 'true';
  });
}
const namespacesType = { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };

describe('taken out and brought back', () => {
  test('a dry run prints what is there and what would happen to it, and changes nothing', async () => {
    await installed();
    await registered();
    const before = [...(await objects()).keys()];
    const seen = capturedIo({});
    await uninstall(seen, kube, uninstallOptions({ dryRun: true }));
    expect(seen.out).toMatch(/^MutatingWebhookConfiguration +- +isthmus-webhook +removed$/m);
    expect(seen.out).toMatch(/^ClusterRole +- +isthmus-agent +removed$/m);
    expect(seen.out).toMatch(/^Deployment +liqo +isthmus-agent +removed$/m);
    expect(seen.out).toMatch(/^Namespace +- +liqo +removed$/m);
    expect(seen.out).toMatch(
      /^CustomResourceDefinition +- +tenants\.authentication\.liqo\.io +kept: removed with --purge$/m,
    );
    expect([...(await objects()).keys()]).toEqual(before);
    // Everything that is here and was not at first is in the list, or goes with what is.
    const listed = new Set(seen.out.split('\n').map((line) => line.split(/ +/)[2]));
    const owned =
      /^\+ (pods|replicasets\.apps|controllerrevisions\.apps|endpoints|endpointslices\S*|ipaddresses\S*|apiservices\S*) |\/(kube-root-ca\.crt|default)$/;
    const missing = (await differences()).filter(
      (line) => !owned.test(line) && !listed.has(/^. \S+ [^/ ]*\/(\S+?)(?:: |$)/.exec(line)?.[1]),
    );
    expect(missing).toEqual([]);
  }, 120_000);

  test('pods can be made, and nothing is left but what is listed', async () => {
    const seen = capturedIo({});
    await uninstall(seen, kube, uninstallOptions());
    await pod(labelled);
    expect(cluster.agents()).toEqual([]);
    const left = await onceCollected(/^\+ customresourcedefinitions\.apiextensions\.k8s\.io \//);
    expect(left.length).toBeGreaterThan(20);
    for (const line of left) expect(seen.out).toContain(line.split('/').at(-1));
  }, 120_000);

  test('with --purge the cluster is as it was before the first installation', async () => {
    await installed();
    await registered();
    await uninstall(io, kube, uninstallOptions({ purge: true }));
    await pod(labelled);
    await onceCollected();
  }, 120_000);
});

describe('webhooks of an agent that is gone', () => {
  test('are removed by install before it writes, killed after any write', async () => {
    await leaveBehindWebhooks();
    const step = countOf(1, 25);
    let count = 1 - step;
    for (let done = false; !done; ) {
      count += step;
      done = await runWithCrash(kube, count, (through) => installed(through));
      // Its last write brings the agent, which refuses pods here until they are offloaded.
      if ((await kube.get(deployments, { namespace: 'liqo', name: 'isthmus-agent' })) === undefined)
        await pod(labelled);
    }
    expect(count).toBeGreaterThan(40);
    await registered();
    expect((await kube.get(deployments, { namespace: 'liqo', name: 'isthmus-agent' }))?.status?.availableReplicas).toBe(
      1,
    );
  }, 240_000);

  test('refuse nothing that an installation writes: Helm and Argo CD write custom resources after the agent', async () => {
    await removed(false);
    await cluster.makeNamespace('liqo');
    await leaveBehindWebhooks();
    const written = objectsOfAgent({
      clusterId: 'rome',
      image: 'isthmus.test/agent',
      apiServerUrl: cluster.server.url,
      replicas: 1,
      metrics: 'open',
      platform: { webhookPort: 10250, virtualNodeLabels: { zone: 'far' } },
      network: {
        ranges: {
          podCidrs: ['10.200.0.0/16'],
          serviceCidr: '10.96.0.0/12',
          externalCidr: '10.70.0.0/16',
          internalCidr: '10.80.0.0/16',
          reservedSubnets: ['192.0.2.0/24'],
          fixed: { external: true, internal: true },
        },
      },
    });
    const refusals = await Promise.all(
      written.map((object) =>
        cluster.api.apply(typeOf(object), object, { fieldManager: 'helm', dryRun: true }).then(
          () => [],
          (error: Error) => [`${object.kind} ${object.metadata.name}: ${error.message}`],
        ),
      ),
    );
    expect(refusals.flat()).toEqual([]);
  }, 120_000);

  test('are removed by uninstall', async () => {
    await removed(true);
    await leaveBehindWebhooks();
    await uninstall(io, kube, uninstallOptions({ purge: true }));
    expect(await configurations()).toEqual([]);
    await pod(labelled);
  }, 120_000);
});

describe('killed after each of its writes and run again', () => {
  const wholly = { purge: true, nodeProcess: 'own' } as const;

  test.each(casesOf([{ purge: false, nodeProcess: 'shared' } as const, wholly], [wholly]))(
    'the removal comes to its end, and pods of an offloaded namespace can be made all the while (purge: $purge, node process: $nodeProcess)',
    async ({ purge, nodeProcess }) => {
      await installed(kube, { nodeProcess });
      await registered();
      await offload();
      await pod(offloaded);
      const writes = countOf(1, 10);
      let kills = 0;
      for (;;) {
        const isDone = await runWithCrash(kube, writes, (through) => removed(purge, through));
        await pod(offloaded);
        if (isDone) break;
        kills += 1;
      }
      expect(kills * writes).toBeGreaterThan(purge ? 36 : 12);
      expect(cluster.agents()).toEqual([]);
      await pod(labelled);
      await onceCollected(purge ? undefined : /customresourcedefinitions|namespaceoffloadings|namespaces \/demo/);
    },
    240_000,
  );

  test('a removal that was interrupted anywhere is undone by install', async () => {
    await installed();
    for (const count of casesOf([1, 3, 4, 5, 12, 40], [4, 40])) {
      await registered();
      expect(await runWithCrash(kube, count, (through) => removed(true, through))).toBe(false);
      await installed();
    }
    await registered();
    await uninstall(io, kube, uninstallOptions({ purge: true }));
  }, 240_000);
});
