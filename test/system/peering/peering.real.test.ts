/** One peering from end to end through real API servers: what it makes, how it is held, how it ends. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { isthmus } from '#cli/captured-io.ts';
import { clusterRoleBindings, pods, roleBindings, secrets } from '#shared/domain/core-kinds.ts';
import {
  annotation,
  authenticationKeysSecret,
  isthmusAnnotation,
  label,
  name,
  systemNamespace,
} from '#shared/domain/liqo-keys.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { lacking, readAsked } from '#test/harness/used-rights.ts';
import {
  introduce,
  leftovers,
  nothingLeft,
  peer,
  presentIdentity,
  presentTenant,
  removePeering,
  unpeerConsumer,
  unpeerProvider,
  virtualNodeAppears,
} from './broker-part.ts';
import { type Pair, startPair } from './clusters.ts';

const startedAt = Date.now();
let pair: Pair;
const here = { namespace: name.tenantNamespace('milan'), name: 'milan' };
const there = { namespace: name.tenantNamespace('rome'), name: 'milan' };
const tenantRef = { namespace: name.tenantNamespace('rome'), name: 'rome' };
const identityRef = { namespace: name.tenantNamespace('milan'), name: name.controlPlaneIdentity('milan') };

beforeAll(async () => {
  pair = await startPair();
}, 900_000);
afterAll(async () => await pair?.stop());

describe('a peering', () => {
  inOrder('describe');
  test('B036 turns a slice into a virtual node with what was granted', async () => {
    const startedAt = Date.now();
    await peer(pair, { cpu: '2' });
    console.info(`peer to VirtualNode: ${Date.now() - startedAt} ms`);
    const node = await pair.consumer.api.get(virtualNodes, here);
    expect(node?.spec).toMatchObject({
      clusterID: 'milan',
      kubeconfigSecretRef: { name: 'kubeconfig-resourceslice-milan' },
      resourceQuota: { hard: { cpu: '2', memory: '8Gi', pods: '110' } },
      labels: { 'kubernetes.io/arch': 'arm64', 'kubernetes.io/os': 'linux' },
    });
    expect(node?.metadata.ownerReferences).toMatchObject([{ kind: 'ResourceSlice', name: 'milan', controller: true }]);
  });

  test('B037 makes a Quota at the provider for the user of the slice', async () => {
    const [quota] = await pair.provider.api.list(quotas);
    expect(quota?.spec).toMatchObject({
      user: expect.stringMatching(/^milan-[0-9a-f]{12}$/),
      limitsEnforcement: 'Soft',
      resources: { cpu: '2' },
    });
  });

  test('is summarised on both sides', async () => {
    await eventually('summaries', async () => {
      const seenHere = await pair.consumer.api.get(foreignClusters, { name: 'milan' });
      const seenThere = await pair.provider.api.get(foreignClusters, { name: 'rome' });
      expect(seenHere?.status).toMatchObject({
        role: 'Provider',
        apiServerUrl: pair.provider.server.url,
        tenantNamespace: { local: 'liqo-tenant-milan', remote: 'liqo-tenant-rome' },
        modules: { networking: { enabled: false }, authentication: { enabled: true }, offloading: { enabled: true } },
        conditions: [{ type: 'APIServerStatus', status: 'Established' }],
      });
      expect(seenThere?.status).toMatchObject({
        role: 'Consumer',
        modules: { authentication: { conditions: [{ type: 'AuthTenantStatus', status: 'Ready' }] } },
      });
      return true;
    });
  });

  test('grants a changed request, and no longer what was taken out of it', async () => {
    const patch = { spec: { resources: { cpu: '3', 'example.com/gpu': '1' } } };
    await pair.consumer.api.mergePatch(resourceSlices, here, patch);
    await eventually(
      'the bigger grant',
      async () =>
        (await pair.consumer.api.get(virtualNodes, here))?.spec.resourceQuota?.hard?.['example.com/gpu'] === '1',
    );
    await pair.consumer.api.mergePatch(resourceSlices, here, { spec: { resources: { 'example.com/gpu': null } } });
    await eventually('the smaller grant', async () => {
      const status = (await pair.consumer.api.get(resourceSlices, here))?.status;
      const hard = (await pair.consumer.api.get(virtualNodes, here))?.spec.resourceQuota?.hard ?? {};
      const [quota] = await pair.provider.api.list(quotas);
      return (
        status?.resources?.cpu === '3' &&
        !('example.com/gpu' in hard) &&
        !('example.com/gpu' in (quota?.spec.resources ?? {}))
      );
    });
  });

  test('denies what the PeeringPolicy of the provider does not allow, in words, and says so at the consumer', async () => {
    await pair.provider.api.create(peeringPolicies, {
      apiVersion: 'isthmus.dev/v1alpha1',
      kind: 'PeeringPolicy',
      metadata: { name: 'small' },
      spec: {
        tenants: ['*'],
        asProvider: {
          enabled: true,
          autoAccept: true,
          peers: ['*'],
          maxResourcesPerPeer: { cpu: '2' },
          classes: ['default'],
          sharePercent: 90,
          elastic: false,
        },
        reflectedKinds: [],
      },
    });
    await eventually('the denial', async () => {
      const condition = (await pair.consumer.api.get(resourceSlices, here))?.status?.conditions?.find(
        ({ type }) => type === 'Resources',
      );
      expect(condition).toMatchObject({ status: 'Denied', message: expect.stringContaining('cpu: asked 3, limit 2') });
      const [quota] = await pair.provider.api.list(quotas);
      expect(quota?.spec.cordoned).toBe(true);
      return true;
    });
    await pair.consumer.api.mergePatch(resourceSlices, here, { spec: { resources: { cpu: '2' } } });
    await eventually('the grant', async () => {
      const slice = await pair.consumer.api.get(resourceSlices, here);
      const [quota] = await pair.provider.api.list(quotas);
      return (
        slice?.status?.conditions?.every(({ status }) => status === 'Accepted') && quota?.spec.cordoned === undefined
      );
    });
    await pair.provider.api.delete(peeringPolicies, { name: 'small' });
  });

  test('takes back of the grant what pods of the provider need, and gives it again five minutes after they went', async () => {
    const grant = async () => {
      const slice = await pair.consumer.api.get(resourceSlices, here);
      const [quota] = await pair.provider.api.list(quotas);
      const hard = (await pair.consumer.api.get(virtualNodes, here))?.spec.resourceQuota?.hard;
      return [slice?.status?.resources?.cpu, quota?.spec.resources.cpu, hard?.cpu];
    };
    const own = { namespace: 'default', name: 'own' };
    const container = { name: 'app', image: 'app', resources: { requests: { cpu: '999' } } };
    const spec = { nodeName: 'milan-1', containers: [container] };
    await pair.provider.api.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: own, spec });
    await eventually('the smaller grant', async () => {
      expect(await grant()).toEqual(['900m', '900m', '900m']);
      const conditions = (await pair.consumer.api.get(resourceSlices, here))?.status?.conditions ?? [];
      expect(conditions.find(({ type }) => type === 'Resources')).toMatchObject({
        status: 'Accepted',
        message: expect.stringContaining('cpu 900m of 2'),
      });
      return true;
    });
    await pair.provider.api.delete(pods, own, { gracePeriodSeconds: 0 });
    pair.clock.advance(5 * 60_000);
    await eventually('the whole grant', async () => {
      expect(await grant()).toEqual(['2', '2', '2']);
      return true;
    });
  });

  test('repairs a copy that was changed at the provider, and a binding that was widened', async () => {
    await pair.provider.api.mergePatch(resourceSlices, there, { spec: { resources: { cpu: '64' } } });
    const [binding] = await pair.provider.api.list(roleBindings, { labelSelector: `${label.remoteClusterId}=rome` });
    if (binding === undefined) throw new Error('no binding for rome');
    const extra = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'mallory' };
    await pair.provider.api.update(roleBindings, { ...binding, subjects: [...(binding.subjects ?? []), extra] });
    await eventually('both repaired', async () => {
      expect((await pair.provider.api.get(resourceSlices, there))?.spec.resources).toEqual({ cpu: '2' });
      const [now] = await pair.provider.api.list(roleBindings, { labelSelector: `${label.remoteClusterId}=rome` });
      expect(now?.subjects).toEqual([{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'rome' }]);
      return true;
    });
  });

  test('cordoned: nothing new, what is stays; drained: everything goes; active again: everything returns', async () => {
    const setCondition = (tenantCondition: string) =>
      pair.provider.api.mergePatch(tenants, tenantRef, { spec: { tenantCondition } });
    await setCondition('Cordoned');
    await eventually('a cordoned quota', async () => {
      const [quota] = await pair.provider.api.list(quotas);
      const copy = await pair.provider.api.get(resourceSlices, there);
      return quota?.spec.cordoned === true && copy?.metadata.annotations?.[annotation.cordonTenant] === 'true';
    });
    await setCondition('Drained');
    await eventually('nothing but the Tenant', async () => {
      const left = await Promise.all([pair.provider.api.list(resourceSlices), pair.provider.api.list(quotas)]);
      const bound = await pair.provider.api.list(clusterRoleBindings, { labelSelector: label.remoteClusterId });
      return left.flat().length === 0 && bound.length === 0;
    });
    await setCondition('Active');
    await eventually(
      'the quota again',
      async () =>
        (await pair.provider.api.list(quotas))[0]?.spec.cordoned === undefined &&
        (await pair.provider.api.list(quotas)).length === 1,
      { withinMs: 40_000 },
    );
  });

  test('renews every certificate after two thirds of its life, without a gap', async () => {
    const certificates = async () => ({
      tenant: (await pair.provider.api.get(tenants, tenantRef))?.status?.authParams?.signedCRT,
      controlPlane: (await pair.consumer.api.get(identities, identityRef))?.spec.authParams.signedCRT,
      slice: (await pair.consumer.api.get(identities, { ...identityRef, name: 'resourceslice-milan' }))?.spec.authParams
        .signedCRT,
    });
    const before = await certificates();
    expect(before.tenant).toBe(before.controlPlane);
    const kubeconfigBefore = (
      await pair.consumer.api.get(secrets, { ...identityRef, name: `kubeconfig-${identityRef.name}` })
    )?.data?.kubeconfig;
    pair.clock.advance(2_500_000);
    const after = await eventually('new certificates on both sides', async () => {
      const now = await certificates();
      return now.tenant !== before.tenant && now.controlPlane === now.tenant && now.slice !== before.slice
        ? now
        : undefined;
    });
    expect(after.controlPlane).toBeDefined();
    await eventually(
      'the new kubeconfig',
      async () =>
        (await pair.consumer.api.get(secrets, { ...identityRef, name: `kubeconfig-${identityRef.name}` }))?.data
          ?.kubeconfig !== kubeconfigBefore,
    );
    await pair.consumer.api.mergePatch(resourceSlices, here, { spec: { resources: { cpu: '1' } } });
    await eventually(
      'a change through the new certificate',
      async () => (await pair.consumer.api.get(virtualNodes, here))?.spec.resourceQuota?.hard?.cpu === '1',
    );
  });

  const keysRef = { namespace: systemNamespace, name: authenticationKeysSecret };
  const sliceState = async () => {
    const slice = await pair.consumer.api.get(resourceSlices, here);
    return slice?.status?.conditions?.map(({ type, status, lastTransitionTime }) => [type, status, lastTransitionTime]);
  };
  /** A change at the consumer reaches its virtual node by way of the provider, hence through the credentials of both kinds. */
  const goesThrough = async (cpu: string) => {
    await pair.consumer.api.mergePatch(resourceSlices, here, { spec: { resources: { cpu } } });
    await eventually(
      `${cpu} CPU granted`,
      async () => (await pair.consumer.api.get(virtualNodes, here))?.spec.resourceQuota?.hard?.cpu === cpu,
      { withinMs: 30_000 },
    );
  };

  test('goes on when the consumer rotates its key: no consent is needed, nothing is denied, the node stays', async () => {
    const node = (await pair.consumer.api.get(virtualNodes, here))?.metadata.uid;
    const before = await sliceState();
    const former = (await pair.consumer.api.get(secrets, keysRef))?.data?.privateKey;
    const line = ['rotate-key', '--kubeconfig', pair.consumer.server.kubeconfigPath];
    expect((await isthmus(line)).out).toContain('the cluster has a new key');
    expect(await isthmus(line)).toMatchObject({ code: 5, err: expect.stringContaining('has not ended') });
    await presentTenant(pair);
    await eventually('the former key to be forgotten', async () => {
      const { privateKey, ...rest } = (await pair.consumer.api.get(secrets, keysRef))?.data ?? {};
      expect(Object.keys(rest).sort()).toEqual(['publicKey', 'succession']);
      return privateKey !== former;
    });
    await goesThrough('2');
    expect((await pair.consumer.api.get(virtualNodes, here))?.metadata.uid).toBe(node);
    expect(await sliceState()).toEqual(before);
  });

  test('gives nothing to a consumer of the same ID with an unknown key, until an administrator approves it', async () => {
    const { privateKey, publicKey } = generateClusterKeys();
    const data = { privateKey: toBase64(privateKey), publicKey: toBase64(publicKey) };
    await pair.consumer.api.mergePatch(secrets, keysRef, { data });
    await presentTenant(pair);
    const reported = await eventually('the condition', async () => {
      const status = (await pair.provider.api.get(tenants, tenantRef))?.status;
      return status?.conditions?.find(({ reason }) => reason === 'PeerKeyChanged') && !status.authParams
        ? status.conditions[0]
        : undefined;
    });
    const summary = async () =>
      (await pair.provider.api.get(foreignClusters, { name: 'rome' }))?.status?.modules.authentication.conditions?.find(
        ({ type }) => type === 'AuthTenantStatus',
      )?.reason;
    await eventually('the summary', async () => (await summary()) === 'PeerKeyChanged');
    const bound = await pair.provider.api.list(roleBindings, { namespace: tenantRef.namespace });
    expect(bound.map(({ metadata }) => metadata.name)).toContain('liqo-binding-liqo-remote-controlplane');
    const [, consent = ''] = /(sha256:[0-9a-f]{64}) --overwrite/.exec(reported.message ?? '') ?? [];
    const annotations = { [isthmusAnnotation.acceptKey]: consent };
    await pair.provider.api.mergePatch(tenants, tenantRef, { metadata: { annotations } });
    await eventually('credentials', async () => {
      const status = (await pair.provider.api.get(tenants, tenantRef))?.status;
      return status?.authParams !== undefined && status.conditions === undefined;
    });
    await presentIdentity(pair);
    await goesThrough('1');
  });

  test('leaves nothing on either side when it ends', async () => {
    const startedAt = Date.now();
    await unpeerConsumer(pair);
    console.info(`unpeer of the consumer: ${Date.now() - startedAt} ms`);
    await unpeerProvider(pair);
    await nothingLeft(pair);
    console.info(`unpeer: ${Date.now() - startedAt} ms`);
  });

  test('can be made again', async () => {
    const startedAt = Date.now();
    const at: Record<string, number> = {};
    const mark = (phase: string): void => {
      at[phase] = Date.now() - startedAt;
    };
    await introduce(pair);
    mark('introduced');
    await presentTenant(pair);
    mark('signed');
    await presentIdentity(pair);
    mark('credentials');
    await virtualNodeAppears(pair);
    mark('virtual node');
    console.info('peer again, ms:', at);
  });

  test('and one in the other direction share their namespaces and leave each other alone', async () => {
    const reverse: Pair = { ...pair, consumer: pair.provider, provider: pair.consumer };
    await peer(reverse, { cpu: '1' });
    await eventually('both roles', async () => {
      const roles = await Promise.all([
        pair.consumer.api.get(foreignClusters, { name: 'milan' }),
        pair.provider.api.get(foreignClusters, { name: 'rome' }),
      ]);
      return roles.every((foreign) => foreign?.status?.role === 'ConsumerAndProvider');
    });
    const nodesOf = async (cluster: Pair['consumer']) =>
      (await cluster.api.list(virtualNodes)).map(({ metadata }) => metadata.name);
    expect(await nodesOf(pair.consumer)).toEqual(['milan']);
    expect(await nodesOf(pair.provider)).toEqual(['rome']);
    await removePeering(pair);
    await eventually(
      'the first to be gone',
      async () => (await pair.provider.api.get(foreignClusters, { name: 'rome' }))?.status?.role === 'Provider',
    );
    await pair.provider.api.mergePatch(
      resourceSlices,
      { namespace: name.tenantNamespace('rome'), name: 'rome' },
      { spec: { resources: { cpu: '3' } } },
    );
    await eventually('the second to work on', async () => {
      const [node] = await pair.provider.api.list(virtualNodes);
      return node?.spec.resourceQuota?.hard?.cpu === '3';
    });
    await removePeering(reverse);
    await eventually('nothing left but the namespaces', async () => {
      const left = [...(await leftovers(pair.consumer.api)), ...(await leftovers(pair.provider.api))];
      expect(left.filter((one) => !one.startsWith('Namespace '))).toEqual([]);
      return true;
    });
  });
});

test('the agents of both clusters asked for nothing that they have no right to', async () => {
  for (const { server } of [pair.consumer, pair.provider]) {
    const asked = await readAsked(server.dir, startedAt);
    expect(asked.length).toBeGreaterThan(100);
    expect(lacking(asked)).toEqual([]);
  }
});
