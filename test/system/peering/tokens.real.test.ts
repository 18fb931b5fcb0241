/** Two clusters of which none signs a certificate: they peer, offload, renew and are revoked by tokens that no party between them can read. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sliceUser } from '#agent/model/peer-user.ts';
import { tokenOpener } from '#agent/peering/keys/token-opener.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import {
  certificateSigningRequests,
  clusterRoleBindings,
  configMaps,
  nodes,
  pods,
  roleBindings,
  secrets,
  serviceAccounts,
} from '#shared/domain/core-kinds.ts';
import { label, name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import { recordingLog } from '#test/harness/logs.ts';
import { revokeUntilRefused } from '#test/harness/until-refused.ts';
import {
  isReady,
  offloadedNamespace,
  pod,
  podAt,
  report,
  shadowOf,
  soon,
  startUnsignedOffloadingPair,
} from '../offloading/offloading-clusters.ts';
import { presentIdentity } from './broker-part.ts';
import { tokensIn, tokensInObjects } from './clear-tokens.ts';
import type { Pair } from './clusters.ts';

const here = name.tenantNamespace('milan');
const there = name.tenantNamespace('rome');
const controlPlane = name.controlPlaneIdentity('milan');
const ofSlice = name.sliceIdentity('milan');

const { log, lines: logged } = recordingLog();

let pair: Pair<TestApiServer>;
beforeAll(async () => {
  pair = await startUnsignedOffloadingPair({ credentials: 'auto', log });
}, 900_000);
afterAll(async () => await pair?.stop());

const identity = (of: string): Promise<Identity | undefined> =>
  pair.consumer.api.get(identities, { namespace: here, name: of });
const sealed = async (of: string): Promise<string | undefined> => (await identity(of))?.spec.authParams.sealedToken;

async function kubeconfigOf(of: string): Promise<string> {
  const secret = await pair.consumer.api.get(secrets, { namespace: here, name: name.kubeconfigSecret(of) });
  return Buffer.from(secret?.data?.kubeconfig ?? '', 'base64').toString();
}

/** As the consumer's agent logs in. */
async function login(of: string): Promise<KubeApi> {
  return connect(await kubeconfigOf(of));
}

async function connect(kubeconfig: string): Promise<KubeApi> {
  const openToken = tokenOpener(pair.consumer.api, systemNamespace);
  return createKubeApi(await connectKubeconfig(kubeconfig, { isFromCluster: true, openToken }), {
    clock: pair.clock,
    log: silentLog,
  });
}

test('a cluster finds out that its signer signs nothing, says so, and gives tokens', async () => {
  const tenant = await pair.provider.api.get(tenants, { namespace: there, name: 'rome' });
  expect(tenant?.status?.conditions).toContainEqual(
    expect.objectContaining({
      type: 'Credentials',
      status: 'True',
      reason: 'Token',
      message: expect.stringMatching(
        /kubernetes.io\/kube-apiserver-client gave no certificate for an approved request within 30 s/,
      ),
    }),
  );
  expect(tenant?.status?.authParams).not.toHaveProperty('signedCRT');
  for (const of of [controlPlane, ofSlice]) {
    const { authParams } = (await identity(of))?.spec ?? {};
    expect(authParams).not.toHaveProperty('signedCRT');
    const left = Date.parse(authParams?.tokenExpiration ?? '') - pair.clock.now();
    expect(left).toBeGreaterThan(23 * 3_600_000);
    expect(left).toBeLessThanOrEqual(24 * 3_600_000);
  }
  for (const { api } of [pair.consumer, pair.provider]) {
    const requests = (await api.list(certificateSigningRequests)).map(({ metadata }) => metadata.name);
    expect(requests.filter((one) => /^isthmus-signer-probe|^liqo-identity/.test(one))).toEqual([]);
  }
});

test('a kubeconfig with a sealed token is of use to the agent only', async () => {
  const kubeconfig = await kubeconfigOf(controlPlane);
  await expect(connectKubeconfig(kubeconfig)).rejects.toMatchObject({ code: 'invalid_input' });
  const strange = tokenOpener(pair.provider.api, systemNamespace);
  await expect(connectKubeconfig(kubeconfig, { openToken: strange })).rejects.toThrow(
    /which this cluster does not have/,
  );
});

test('pods are offloaded by token, and count for the user that a certificate would name', async () => {
  await offloadedNamespace(pair, 'shop');
  await pair.consumer.api.create(pods, pod('shop', 'web', { nodeName: 'milan' }));
  const shadow = await shadowOf(pair.provider.api, 'shop-rome', 'web');
  const user = sliceUser('milan', 'rome');
  expect(shadow.metadata.labels?.[label.creatorUser]).toBe(user);
  await podAt(pair.provider.api, 'shop-rome', 'web');
  await report(pair.provider.api, 'shop-rome', 'web', 'Running');
  await soon(
    'its status at home',
    async () => (await pair.consumer.api.get(pods, { namespace: 'shop', name: 'web' }))?.status?.phase === 'Running',
  );
  await soon('it to be counted', async () => {
    const [quota] = await pair.provider.api.list(quotas);
    return quota?.spec.user === user && quota.status?.used?.pods === '1';
  });
});

test('accounts have what certificates have, one by one, and never a group of accounts', async () => {
  const account = (of: string) => ({ kind: 'ServiceAccount', namespace: there, name: of });
  const group = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'rome' };
  const binding = await pair.provider.api.get(roleBindings, { namespace: 'shop-rome', name: there });
  expect(binding?.subjects).toEqual([group, account('isthmus-slice-milan')]);
  const wide = (
    await pair.provider.api.list(clusterRoleBindings, { labelSelector: `${label.remoteClusterId}=rome` })
  )[0];
  expect(wide?.subjects).toEqual([group, account('isthmus-slice-milan')]);
  const own = (await pair.provider.api.list(roleBindings, { namespace: there })).find(({ metadata }) =>
    metadata.name.startsWith('liqo-binding-'),
  );
  expect(own?.subjects).toEqual([{ ...group, kind: 'User' }, account('isthmus-peer')]);
  const [peerApi, sliceApi] = [await login(controlPlane), await login(ofSlice)];
  expect(await peerApi.list(resourceSlices, { namespace: there })).toHaveLength(1);
  expect(await sliceApi.list(pods, { namespace: 'shop-rome' })).toHaveLength(1);
  await expect(peerApi.list(pods, { namespace: 'shop-rome' })).rejects.toMatchObject({ code: 'kube_forbidden' });
  await expect(sliceApi.list(resourceSlices, { namespace: there })).rejects.toMatchObject({ code: 'kube_forbidden' });
  await expect(peerApi.list(secrets, { namespace: there })).rejects.toMatchObject({ code: 'kube_forbidden' });
  // Admission takes it for the consumer that it is.
  const slice = {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: { name: 'other', namespace: there },
    spec: {},
  };
  await expect(peerApi.create(resourceSlices, slice)).rejects.toThrow(/from consumer rome accepted is true/);
});

test('half a life later both tokens are renewed through the peering itself, and the node stays', async () => {
  const node = (await pair.consumer.api.get(nodes, { name: 'milan' }))?.metadata.uid;
  const before = [await sealed(controlPlane), await sealed(ofSlice)];
  pair.clock.advance(12 * 3_600_000 - 120_000);
  await pair.consumer.api.mergePatch(
    resourceSlices,
    { namespace: here, name: 'milan' },
    { spec: { resources: { cpu: '3' } } },
  );
  await soon('a grant', async () => (await pair.provider.api.list(quotas))[0]?.spec.resources.cpu === '3');
  expect([await sealed(controlPlane), await sealed(ofSlice)]).toEqual(before);
  pair.clock.advance(180_000);
  await eventually('both tokens to be renewed', async () => {
    const now = [await sealed(controlPlane), await sealed(ofSlice)];
    return now[0] !== before[0] && now[1] !== before[1];
  });
  await soon('the node to be ready', () => isReady(pair.consumer.api, 'milan'));
  expect((await pair.consumer.api.get(nodes, { name: 'milan' }))?.metadata.uid).toBe(node);
  await pair.consumer.api.create(pods, pod('shop', 'later', { nodeName: 'milan' }));
  await podAt(pair.provider.api, 'shop-rome', 'later');
});

test('no object of either cluster and no line of a log holds a token in the clear', async () => {
  // What is looked for is found where it is.
  const spec = { expirationSeconds: 600 };
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const { status } = await pair.provider.api.postPath<{ status: { token: string } }>(
    `/api/v1/namespaces/${there}/serviceaccounts/isthmus-peer/token`,
    request,
  );
  const bait = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'bait', namespace: 'default' },
    data: { it: status.token },
  };
  await pair.provider.api.create(configMaps, bait);
  expect(await tokensInObjects(pair.provider.api)).toEqual(['ConfigMap default/bait: isthmus-peer']);
  await pair.provider.api.delete(configMaps, { namespace: 'default', name: 'bait' });
  expect(tokensIn(`{"authorization":"Bearer ${status.token}"}`)).toEqual(['isthmus-peer']);

  for (const { api } of [pair.consumer, pair.provider]) expect(await tokensInObjects(api)).toEqual([]);
  expect(logged.length).toBeGreaterThan(0);
  expect(logged.flatMap(tokensIn)).toEqual([]);
});

test('deleting the Secret ends all tokens that were ever bound to it, and a copy of the sealed text brings none back', async () => {
  const api = await login(controlPlane);
  const replayed = await kubeconfigOf(controlPlane);
  const secret = { namespace: there, name: 'isthmus-credential-peer' };
  const uid = (await pair.provider.api.get(secrets, secret))?.metadata.uid;
  await revokeUntilRefused(
    () => api.list(resourceSlices, { namespace: there }),
    () => pair.provider.api.delete(secrets, secret),
  );

  // A new one is issued to the same key; a broker, or a replay, that brings the old text gets the consumer nowhere.
  const made = await soon('another Secret', async () => {
    const found = await pair.provider.api.get(secrets, secret);
    return found?.metadata.uid !== uid && found?.data?.sealedToken !== undefined && found;
  });
  expect(made.metadata.uid).not.toBe(uid);
  const old = await connect(replayed);
  await expect(old.list(resourceSlices, { namespace: there })).rejects.toMatchObject({ code: 'kube_unauthorized' });

  await eventually('the consumer to be let in by the new token', async () => {
    try {
      // As a broker tells every change: the status of the Tenant may have the former text for a moment.
      await presentIdentity(pair);
      await (await login(controlPlane)).list(resourceSlices, { namespace: there });
      return true;
    } catch {
      return false;
    }
  });
});

test.each([
  ['of another Identity', async () => ({ sealedToken: await sealed(ofSlice) }), /another account/],
  ['altered', async () => ({ sealedToken: `${(await sealed(controlPlane))?.slice(0, -4)}AAAA` }), /was altered/],
])('a sealed text that is %s changes nothing but a condition in words', async (_what, lie, problem) => {
  const { authParams } = (await identity(controlPlane))?.spec ?? {};
  await soon('the kubeconfig to follow', async () =>
    (await kubeconfigOf(controlPlane)).includes(authParams?.sealedToken ?? '-'),
  );
  const { sealedToken } = await lie();
  const spec = { authParams: { sealedToken } };
  await pair.consumer.api.mergePatch(identities, { namespace: here, name: controlPlane }, { spec });
  const events = `/apis/events.k8s.io/v1/namespaces/${here}/events`;
  await soon('an Event that says why', async () => {
    const { items } = JSON.parse(await pair.consumer.api.getPath(events)) as {
      items: { reason: string; note: string }[];
    };
    return items.some(({ reason, note }) => reason === 'InvalidIdentity' && problem.test(note));
  });
  expect(await kubeconfigOf(controlPlane)).not.toContain(sealedToken);
  await (await login(controlPlane)).list(resourceSlices, { namespace: there });
  await pair.consumer.api.mergePatch(identities, { namespace: here, name: controlPlane }, { spec: { authParams } });
});

test('a signer that begins to work is found within the hour, and consumers get certificates from then on', async () => {
  await pair.provider.server.restartControllerManager([]);
  pair.clock.advance(3_600_000);
  const tenant = { namespace: there, name: 'rome' };
  await eventually(
    'a certificate for the consumer',
    async () => (await pair.provider.api.get(tenants, tenant))?.status?.authParams?.signedCRT !== undefined,
    { withinMs: 90_000 },
  );
  const { conditions } = (await pair.provider.api.get(tenants, tenant))?.status ?? {};
  expect(conditions).toContainEqual(expect.objectContaining({ type: 'Credentials', reason: 'Certificate' }));
  const requests = (await pair.provider.api.list(certificateSigningRequests)).map(({ metadata }) => metadata.name);
  expect(requests.filter((one) => one.startsWith('isthmus-signer-probe'))).toEqual([]);
});

test('with the Tenant go the accounts, their Secrets and all access', async () => {
  const api = await login(controlPlane);
  await pair.provider.api.delete(tenants, { namespace: there, name: 'rome' });
  await eventually('it to be refused', async () => {
    try {
      await api.list(resourceSlices, { namespace: there });
      return false;
    } catch (error) {
      return codeOf(error) === 'kube_unauthorized' || codeOf(error) === 'kube_forbidden';
    }
  });
  await eventually('nothing of it to be left', async () => {
    const accounts = await pair.provider.api.list(serviceAccounts, {
      namespace: there,
      labelSelector: label.remoteClusterId,
    });
    const left = (await pair.provider.api.list(secrets, { namespace: there })).filter(({ metadata }) =>
      metadata.name.startsWith('isthmus-credential-'),
    );
    return accounts.length + left.length === 0;
  });
});
