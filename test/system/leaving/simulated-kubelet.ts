/** A cluster on a real API server whose kubelet is played: what runs in the agent's pods is the agent's own code, with the rights of its account. */

import { setTimeout as timer } from 'node:timers/promises';
import * as yaml from 'yaml';
import { startAdmission } from '#agent/admission/admission.ts';
import { createNetworkControllers } from '#agent/network/network.ts';
import { createOffloadingControllers } from '#agent/offloading/offloading.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createHooks } from '#agent/webhooks.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { leases, namespaces, nodes, pods, serviceAccounts } from '#shared/domain/core-kinds.ts';
import { type Pod, refOf } from '#shared/domain/kube-object.ts';
import { linuxOnly, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';

export interface PlayedCluster {
  readonly server: TestApiServer;
  /** As an administrator. */
  readonly api: KubeApi;
  /** Resolves when pods can be made in it as far as Kubernetes is concerned. */
  makeNamespace(name: string, labels?: Record<string, string>): Promise<void>;
  /** Names of the agent's pods whose process runs. */
  agents(): readonly string[];
  stop(): Promise<void>;
}

const deps = { clock: systemClock, log: silentLog };
const node = 'node-1';
const everyMs = 200;
const beatRounds = 25;

interface Agent {
  readonly name: string;
  end(): Promise<void>;
}

export async function startPlayedCluster(): Promise<PlayedCluster> {
  const server = await startApiServer({ controllerManager: true });
  const connection = await connectKubeconfig(server.kubeconfig);
  const api = createKubeApi(connection, deps);
  const running = new Map<string, Agent>();
  const stopped = new AbortController();
  await api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: node, labels: { ...linuxOnly } } });
  const playing = play();

  async function play(): Promise<void> {
    for (let round = 0; !stopped.signal.aborted; round++) {
      if (round % beatRounds === 0) await beat(api).catch(() => undefined);
      await playKubelet().catch(() => undefined);
      await timer(everyMs, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  }

  /** A pod of the agent is gone no sooner than its process has ended. */
  async function playKubelet(): Promise<void> {
    for (const pod of await api.list(pods, { labelSelector: 'app.kubernetes.io/part-of=isthmus' })) {
      const { uid = '', deletionTimestamp } = pod.metadata;
      if (deletionTimestamp !== undefined) {
        await running.get(uid)?.end();
        running.delete(uid);
        await api.delete(pods, refOf(pod), { gracePeriodSeconds: 0 });
      } else if (pod.status?.phase !== 'Running') {
        if (isOfController(pod) && !running.has(uid)) running.set(uid, await startAgent(server, api, pod));
        await runPod(api, pod);
      }
    }
  }

  return {
    server,
    api,
    async makeNamespace(name, labels = {}) {
      await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
      await eventually('its account', () => api.get(serviceAccounts, { namespace: name, name: 'default' }));
    },
    agents: () => [...running.values()].map(({ name }) => name),
    async stop() {
      stopped.abort();
      await playing;
      await Promise.all([...running.values()].map((agent) => agent.end()));
      connection.close();
      await server.stop();
    },
  };
}

const isOfController = ({ metadata }: Pod): boolean =>
  metadata.labels?.['app.kubernetes.io/name'] === 'controller-manager';

async function beat(api: KubeApi): Promise<void> {
  const metadata = { namespace: 'kube-node-lease', name: node };
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: node, leaseDurationSeconds: 40, renewTime };
  await api.apply(
    leases,
    { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec },
    { fieldManager: 'kubelet' },
  );
}

async function runPod(api: KubeApi, pod: Pod): Promise<void> {
  const ref = refOf(pod);
  if (!pod.spec?.nodeName) {
    const metadata = { namespace: ref.namespace ?? '', name: ref.name };
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    await api.post(pods, ref, 'binding', { apiVersion: 'v1', kind: 'Binding', metadata, target });
  }
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: new Date().toISOString() }];
  await api.mergePatch(pods, ref, { status: { phase: 'Running', conditions } }, { subresource: 'status' });
}

/** The API server of a test reaches no Service: it calls the webhooks by URL. All else is as in a pod. */
async function startAgent(server: TestApiServer, admin: KubeApi, { metadata }: Pod): Promise<Agent> {
  const account = { namespace: systemNamespace, name: 'isthmus-agent' };
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', metadata: account, spec: {} };
  const { status } = await admin.post<never, { status: { token: string } }>(
    serviceAccounts as never,
    account,
    'token',
    request,
  );
  const config = yaml.parse(server.kubeconfig) as { users: { user: unknown }[] };
  for (const entry of config.users) entry.user = { token: status.token };
  const connection = await connectKubeconfig(yaml.stringify(config));
  const requested = new AbortController();
  const cluster = openCluster(connection, deps, requested.signal);
  const common = { ...deps, cluster, clusterId: 'rome', ids: systemIds, systemNamespace };
  const run = async (): Promise<void> => {
    const admission = await startAdmission({
      ...common,
      hooks: createHooks(common),
      host: '127.0.0.1',
      port: 0,
      callHost: '127.0.0.1',
    });
    const controllers = [...createOffloadingControllers(common), ...createNetworkControllers(common)];
    await Promise.all([admission.run(requested.signal), ...controllers.map((one) => one.run(requested.signal))]);
  };
  // Ends by itself only where it could not start: its namespace is going.
  const ended = run().catch(() => undefined);
  return {
    name: metadata.name,
    async end() {
      requested.abort(new Error('the kubelet ends the pod'));
      await ended;
      connection.close();
    },
  };
}
