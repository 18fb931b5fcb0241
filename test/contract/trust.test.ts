/** Two agents and the broker of this tree: announcements find their way, and a peering is made only where the keys are agreed to. */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBrokerController } from '#agent/broker/broker.ts';
import { type ClusterKeys, fingerprintOf, generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { lockText } from '#shared/domain/peering-lock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { PeeringPolicySpec } from '#shared/schema/isthmus/peering-policy.ts';
import type { TrustedPeer } from '#shared/schema/isthmus/trusted-peer.ts';
import { eventually } from '#test/harness/eventually.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';

const admin = { from: 'test', requestId: 'rq', tenant: 'default', principal: 'api-key/test', role: 'admin' } as const;
const lock = generateClusterKeys();
const derOf = (pem: string) => createPublicKey(pem).export({ type: 'spki', format: 'der' }).toString('base64');
const side = { enabled: true, autoAccept: true, peers: ['*'] };

let dir = '';
let broker: Broker;
const stop = new AbortController();
const running: Promise<void>[] = [];
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-trust-'));
  broker = await startBroker({ dataDir: dir, listen: '127.0.0.1:0', log: silentLog, version: '0' });
});
afterAll(async () => {
  stop.abort(new Error('over'));
  await Promise.allSettled(running);
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

interface Joined {
  readonly id: string;
  readonly keys: ClusterKeys;
  readonly cluster: RememberingCluster;
}

function put({ cluster }: Pick<Joined, 'cluster'>, kind: string, name: string, spec: object): void {
  cluster.put({ apiVersion: 'isthmus.dev/v1alpha1', kind, metadata: { name }, spec } as KubeObject);
}

async function join(id: string, policy: Partial<PeeringPolicySpec> = {}): Promise<Joined> {
  const keys = generateClusterKeys();
  const cluster = new RememberingCluster(Buffer.from(keys.publicKey).toString('base64'));
  const { token } = await broker.control.clusters.createJoinToken(admin, id);
  const asProvider = { ...side, maxResourcesPerPeer: {}, classes: ['default'], sharePercent: 90, elastic: false };
  put({ cluster }, 'PeeringPolicy', 'default', { asConsumer: side, asProvider, ...policy });
  const data = { token: Buffer.from(token).toString('base64') };
  const metadata = { namespace: 'liqo', name: 'isthmus-join' };
  cluster.put({ apiVersion: 'v1', kind: 'Secret', metadata, data } as KubeObject);
  const channel = createBrokerController({
    cluster: cluster.cluster,
    clusterId: id,
    privateKey: createPrivateKey(keys.privateKey),
    clock: systemClock,
    ids: systemIds,
    log: silentLog,
    config: {
      systemNamespace: 'liqo',
      agentVersion: '0',
      apiServerUrl: 'https://192.0.2.1:6443',
      apiServerCa: 'ca',
    },
  });
  running.push(channel.run(stop.signal));
  await eventually('the cluster at the broker', async () =>
    (await broker.control.clusters.list(admin)).items.some((one) => one.id === id),
  );
  return { id, keys, cluster };
}

/** As `isthmus join` does. */
function lockUp(...clusters: readonly Joined[]): void {
  for (const one of clusters) {
    const fingerprint = fingerprintOf(createPublicKey(one.keys.publicKey));
    const at = 1;
    const text = lockText({ tenant: 'default', clusterId: one.id, fingerprint, at });
    const signature = sign(null, Buffer.from(text), createPrivateKey(lock.privateKey)).toString('base64');
    const key = derOf(lock.publicKey);
    put(one, 'PeeringLock', 'default', { keys: [{ key }], own: { fingerprint, signatures: [{ key, at, signature }] } });
  }
}

const request = async (consumer: Joined, provider: Joined) =>
  (
    await broker.control.peerings.request(admin, {
      consumer: consumer.id,
      provider: provider.id,
      resources: { cpu: '1' },
    })
  ).peering.id;
const phase = async (id: string) => (await broker.control.peerings.get(admin, id)).phase;
const reaches = (a: Joined, b: Joined, id: string, wanted: string) =>
  eventually(
    `the peering to be ${wanted}`,
    async () => {
      a.cluster.work(b.cluster);
      b.cluster.work(a.cluster);
      return (await phase(id)) === wanted;
    },
    { withinMs: 60_000, everyMs: 50 },
  );
const trusted = ({ cluster }: Joined, peer: string) =>
  cluster.objects.find(({ kind, metadata }) => kind === 'TrustedPeer' && metadata.name === peer) as
    | TrustedPeer
    | undefined;
const applied = ({ cluster }: Joined) => [...cluster.applied].filter((name) => !name.startsWith('TrustedPeer'));

describe('two clusters that one administrator joined', () => {
  test('peer without a further step, know each other by the lock, and part again', async () => {
    const [rome, milan] = [await join('rome'), await join('milan')];
    lockUp(rome, milan);
    const id = await request(rome, milan);
    await reaches(rome, milan, id, 'Ready');
    const key = (one: Joined) => fingerprintOf(createPublicKey(one.keys.publicKey));
    expect(trusted(rome, 'milan')?.status).toMatchObject({
      trustedBy: 'Lock',
      fingerprint: key(milan),
      agreed: ['consumer'],
    });
    expect(trusted(milan, 'rome')?.status).toMatchObject({
      trustedBy: 'Lock',
      fingerprint: key(rome),
      agreed: ['provider'],
    });
    await broker.control.peerings.unpeer(admin, id);
    await reaches(rome, milan, id, 'Gone');
  }, 90_000);
});

describe('a cluster whose key no administrator vouches for', () => {
  test('gets nothing, is shown with its key, and peers once its key is named on both sides', async () => {
    const [oslo, bergen] = [await join('oslo'), await join('bergen')];
    const id = await request(oslo, bergen);
    await eventually('the refusal at both', () =>
      [trusted(oslo, 'bergen'), trusted(bergen, 'oslo')].every((one) => one?.status?.offered !== undefined),
    );
    await eventually('the condition of the peering', async () =>
      (await broker.control.peerings.get(admin, id)).conditions.some(
        ({ reason, message }) => reason === 'Refused' && message.includes('which this cluster does not know'),
      ),
    );
    expect([...applied(oslo), ...applied(bergen)].filter((name) => !name.startsWith('BrokerLink'))).toEqual([]);
    for (const [here, peer] of [
      [oslo, 'bergen'],
      [bergen, 'oslo'],
    ] as const)
      put(here, 'TrustedPeer', peer, { fingerprint: trusted(here, peer)?.status?.offered });
    await reaches(oslo, bergen, id, 'Ready');
    expect(trusted(oslo, 'bergen')?.status?.trustedBy).toBe('Object');
  }, 90_000);
});

describe('a provider whose policy accepts nothing by itself', () => {
  test('waits until an administrator agrees inside the cluster', async () => {
    const closed = {
      asProvider: {
        ...side,
        autoAccept: false,
        maxResourcesPerPeer: {},
        classes: ['default'],
        sharePercent: 90,
        elastic: false,
      },
    };
    const [bonn, trier] = [await join('bonn'), await join('trier', closed)];
    lockUp(bonn, trier);
    const id = await request(bonn, trier);
    expect(await phase(id)).toBe('Proposed');
    put(trier, 'TrustedPeer', 'bonn', { consent: ['provider'] });
    await reaches(bonn, trier, id, 'Ready');
    expect(trusted(trier, 'bonn')?.status?.agreed).toEqual(['provider']);
  }, 90_000);
});
