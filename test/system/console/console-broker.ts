/** A real local broker that serves the console, and simulated clusters whose agents and controllers work while the test looks at the page. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { consoleFolder } from '#cli/commands/broker-console.ts';
import type { Caller } from '#control/access/caller.ts';
import { newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { openFacts, SimulatedCluster } from '#control/testing/simulated-cluster.ts';
import { linkingFacts } from '#control/testing/simulated-link.ts';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';

const origin = { from: '192.0.2.1', requestId: 'rq-test' };
export const adminOf = (tenant = 'default'): Caller => ({
  ...origin,
  tenant,
  principal: 'api-key/ak_test',
  role: 'admin',
});
const facts: ClusterFacts = {
  ...linkingFacts(openFacts),
  policies: openFacts.policies.map((policy) => ({ ...policy, tenants: ['*'] })),
  nodes: 3,
  allocatable: { cpu: '12', memory: '48Gi', pods: '330' },
};

export interface ConsoleBroker {
  /** The running one: another after a restart. */
  broker(): Broker;
  readonly url: string;
  readonly key: string;
  /** A cluster whose agent works from now on. */
  join(id: string, options?: { readonly tenant?: string; readonly token?: string }): Promise<SimulatedCluster>;
  /** An API key of a tenant, which is made when it is not there. */
  keyOf(role: 'viewer' | 'operator' | 'admin', tenant?: string): Promise<string>;
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

const keys = newAgentKeys();
const pauseMs = 100;

/** `idle`: agents enrol and do nothing more. `corsOrigins`: whose pages may use the API. */
export async function startConsoleBroker({
  idle = false,
  corsOrigins = [],
}: {
  readonly idle?: boolean;
  readonly corsOrigins?: readonly string[];
} = {}): Promise<ConsoleBroker> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'isthmus-console-'));
  const clusters = new Map<string, SimulatedCluster>();
  const start = (listen: string): Promise<Broker> =>
    startBroker({
      dataDir,
      listen,
      log: silentLog,
      clock: systemClock,
      version: '0.1.0',
      consoleFolder,
      corsOrigins,
      allowPrivateWebhooks: true,
      allowPrivateIssuers: true,
    });
  let broker = await start('127.0.0.1:0');
  let up = true;
  const { port, url, adminKey = '' } = broker;
  const life = new AbortController();

  async function stepForEver(): Promise<void> {
    while (!life.signal.aborted) {
      for (const cluster of clusters.values()) {
        if (!up) break;
        // The broker may stop in the middle: the agent asks again.
        await step(cluster).catch((error: unknown) => {
          if (up) throw error;
        });
      }
      await systemClock.sleep(pauseMs, life.signal).catch(() => undefined);
    }
  }
  async function step(cluster: SimulatedCluster): Promise<void> {
    await cluster.pull();
    cluster.work((id) => clusters.get(id));
    await cluster.report();
  }

  async function keyOf(role: 'viewer' | 'operator' | 'admin', tenant = 'default'): Promise<string> {
    await broker.control.tenants.bootstrap(tenant, origin);
    return (await broker.control.tenants.createKey(adminOf(tenant), { name: `${role} of ${tenant}`, role })).secret;
  }

  async function join(
    id: string,
    { tenant = 'default', token }: { readonly tenant?: string; readonly token?: string } = {},
  ) {
    const { clusters: joined } = broker.control;
    const issued = token ?? (await joined.createJoinToken(adminOf(tenant), id)).token;
    const { secret } = JSON.parse(Buffer.from(issued.slice('isthmus1.'.length), 'base64url').toString()) as {
      secret: string;
    };
    const body = { clusterId: id, token: secret, publicKey: keys.publicKey, facts };
    const request = { keys, tenant, clusterId: id, audience: url, now: Date.now(), path: '/v1/agent/enroll' };
    await joined.enroll(body, await signRequest({ ...request, body: JSON.stringify(body) }));
    const cluster = new SimulatedCluster(id, tenant, () => broker.control);
    cluster.facts = facts;
    clusters.set(id, cluster);
    return cluster;
  }

  const stepping = idle ? Promise.resolve() : stepForEver();
  return {
    broker: () => broker,
    url,
    key: adminKey,
    join,
    keyOf,
    async stop() {
      up = false;
      await broker.close();
    },
    async start() {
      broker = await start(`127.0.0.1:${port}`);
      up = true;
    },
    async close() {
      life.abort();
      await stepping;
      if (up) await broker.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
