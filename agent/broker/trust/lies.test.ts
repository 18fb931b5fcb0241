/**
 * A broker that answers anything it likes, against the agent's whole path of desired sets: 10,000 generated lies, 800 of them in `npm test`. Rome has
 * agreed to milan by the lock, has a peering with naples by hand, and knows no other cluster. The lies are built of what such a broker has: every
 * announcement that honest clusters ever signed, its own keys, and manifests of honest or foreign values, whole or changed anywhere.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Cache } from '#kube/model/types.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { ClusterFacts, DesiredSet } from '#shared/schema/protocol/agent-protocol.ts';
import { drawn } from '#test/harness/cases.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';
import { createDesiredState } from '../sync/apply-desired.ts';
import { brokerCaches } from '../sync/watched-objects.ts';
import {
  anyLie,
  base64,
  factsOf,
  honest,
  lockOfRome,
  manifestsFor,
  milan,
  nearTruths,
  rome,
  truth,
} from '../testing/lies.ts';
import { createPeerTrust } from './peer-trust.ts';

const signal = new AbortController().signal;
const perWorld = 8;
/** One lie in a hundred or fewer happens to be the truth; by this seed some do. */
const runs = drawn(10_000 / perWorld, { numRuns: 50, seed: 6 });
const lies = runs.numRuns * perWorld;

const emptyFacts = {
  apiServerUrl: 'https://192.0.2.99:6443',
  apiServerCa: 'CA',
  policies: [],
} as unknown as ClusterFacts;

function world() {
  const cluster = new RememberingCluster();
  const side = { enabled: true, autoAccept: true, peers: ['*'], maxResourcesPerPeer: {}, classes: ['default'] };
  const isthmus = (kind: string, name: string, spec: object) =>
    cluster.put({ apiVersion: 'isthmus.dev/v1alpha1', kind, metadata: { name }, spec } as KubeObject);
  isthmus('PeeringPolicy', 'default', { tenants: ['*'], asConsumer: side, asProvider: side });
  cluster.put(lockOfRome);
  const byHand = [
    ...manifestsFor('consumer', 'naples', factsOf(9), milan.pem),
    ...manifestsFor('provider', 'naples', factsOf(9), milan.pem).slice(-1),
  ] as unknown as KubeObject[];
  for (const object of byHand) cluster.put(object);
  const handMade = () =>
    cluster.objects.filter(
      ({ kind, metadata }) => kind !== 'TrustedPeer' && `${metadata.namespace}${metadata.name}`.includes('naples'),
    );
  const caches = brokerCaches(cluster.cluster.caches);
  const trust = createPeerTrust({
    cluster: cluster.cluster,
    clusterId: 'rome',
    tenant: 'acme',
    privateKey: rome.privateKey,
    clock: systemClock,
    log: silentLog,
    facts: () => emptyFacts,
  });
  const sets = createDesiredState({
    cluster: cluster.cluster,
    caches,
    policies: cluster.cluster.caches.cache(peeringPolicies) as Cache<never>,
    trust,
    clusterId: 'rome',
    tenant: 'acme',
    log: silentLog,
    onProgress: () => undefined,
  });
  let revision = 0;
  async function tell(set: Omit<DesiredSet, 'revision'>): Promise<void> {
    revision += 1;
    sets.accept({ revision, full: false, sets: [{ ...set, revision }], answers: [] });
    for (let pass = 0; pass < 3; pass += 1) await sets.reconcile(set.peering, signal);
  }
  return { cluster, sets, tell, handMade };
}
type World = ReturnType<typeof world>;

const brokers = new Set([
  'Namespace',
  'Tenant',
  'Identity',
  'ResourceSlice',
  'Configuration',
  'PublicKey',
  'Secret',
  'GatewayServer',
  'GatewayClient',
]);
/** Which version of milan's words each object has; fails for any word that milan did not say. */
function versionsIn({ cluster }: World): number[] {
  const of = (kind: string) =>
    cluster.objects.filter(
      (object) => object.kind === kind && !JSON.stringify(object.metadata).includes('naples'),
    ) as (KubeObject & {
      spec: Record<string, unknown>;
    })[];
  for (const { kind, metadata } of cluster.objects) {
    if (!brokers.has(kind) || JSON.stringify(metadata).includes('naples')) continue;
    expect(kind === 'Namespace' ? metadata.name : metadata.namespace).toBe('liqo-tenant-milan');
  }
  const versions: number[] = [];
  const isMilans = (found: unknown, said: (facts: (typeof honest)[number]) => unknown) => {
    const at = honest.findIndex((facts) => JSON.stringify(said(facts)) === JSON.stringify(found));
    expect({ found, at }).not.toEqual({ found, at: -1 });
    versions.push(at);
  };
  for (const { spec } of of('PublicKey')) isMilans(spec.publicKey, ({ wireGuardKey }) => wireGuardKey);
  for (const { spec } of of('Configuration'))
    isMilans(spec.remote, ({ pod, external }) => ({ cidr: { pod: [pod], external: [external] } }));
  for (const { spec } of of('Identity')) {
    const { apiServer, ca, ...rest } = spec.authParams as Record<string, string>;
    isMilans([apiServer, ca], (facts) => [facts.apiServer, base64(facts.ca)]);
    expect(Object.keys(rest)).not.toContain('awsConfig');
    expect([spec.clusterID ?? 'milan', spec.namespace, rest.proxyURL ?? '']).toEqual(['milan', 'liqo-tenant-rome', '']);
  }
  for (const { spec } of of('Tenant')) {
    expect(spec.publicKey).toBe(base64(milan.pem));
    expect([spec.clusterID, spec.authzPolicy ?? 'KeysExchange']).toEqual(['milan', 'KeysExchange']);
  }
  return versions;
}

const shown = (set: object) => JSON.stringify(set).slice(0, 2_000);

describe('a broker that lies', () => {
  test(`gets nothing of a stranger into the cluster by ${lies} lies, and the peer that was agreed to still gets through`, async () => {
    let told = 0;
    let through = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyLie, { minLength: perWorld, maxLength: perWorld }), async (some) => {
        const here = world();
        const before = JSON.stringify(here.handMade());
        for (const lie of some) {
          told += 1;
          await here.tell(lie);
          const versions = versionsIn(here);
          through += versions.length > 0 ? 1 : 0;
          expect(JSON.stringify(here.handMade()), shown(lie)).toBe(before);
        }
        const newest = honest.length - 1;
        for (const peering of ['pe_1', 'pe_2', 'pe_3'])
          await here.tell({ peering, role: 'consumer', peer: 'milan', state: 'absent', peerDead: false, objects: [] });
        await here.tell(truth('pe_honest'));
        expect(here.sets.observed().find(({ peering }) => peering === 'pe_honest')?.refusals).toEqual([]);
        expect(versionsIn(here)).toEqual([newest, newest, newest]);
      }),
      runs,
    );
    expect(told).toBeGreaterThanOrEqual(lies);
    // Lies that happen to be the truth were among them: the generator reaches the inside.
    expect(through).toBeGreaterThan(lies / 1_000);
  }, 600_000);

  test.each(['consumer', 'provider'] as const)(
    'gets no single value of its own into a set about a %s that is the truth otherwise',
    async (role) => {
      const here = world();
      const refused = new Set<string>();
      for (const { at, set } of nearTruths(role)) {
        await here.tell(set);
        expect(() => versionsIn(here), at).not.toThrow();
        if (here.sets.observed().some(({ refusals }) => refusals.length > 0)) refused.add(at.replace(/ = .*/, ''));
      }
      const told = role === 'consumer' ? ['Identity spec.authParams.apiServer', 'Identity spec.authParams.ca'] : [];
      expect([...refused]).toEqual(
        expect.arrayContaining([
          ...told,
          ...(role === 'provider' ? ['Tenant spec.publicKey'] : []),
          ...['PublicKey spec.publicKey', 'Configuration spec.remote.cidr.pod.0'],
          'Configuration spec.remote.cidr.external.0',
        ]),
      );
      await here.tell(truth('pe_1', undefined, role));
      expect(here.sets.observed()[0]?.refusals).toEqual([]);
    },
  );

  test('cannot bring back what milan said before', async () => {
    const here = world();
    const say = (version: number) => here.tell(truth('pe_1', version));
    await say(1);
    expect(versionsIn(here)).toEqual([1, 1, 1]);
    await say(0);
    expect(versionsIn(here)).toEqual([1, 1, 1]);
    expect(here.sets.observed()[0]?.refusals[0]?.code).toBe('peer_unproven');
    await say(2);
    expect(versionsIn(here)).toEqual([2, 2, 2]);
  });
});
