/**
 * A provider that signs nothing, and a consumer that is told nothing but a URL, a CA and a certificate, as one that runs Liqo is: by the front door it offloads, renews, is
 * revoked. Its kubeconfig is tried by kubectl, too.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiServerProxyController } from '#agent/api-proxy/controller.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { pods, secrets } from '#shared/domain/core-kinds.ts';
import { name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import type { ApiServer, TestApiServer } from '#test/harness/kube-apiserver.ts';
import { recordingLog } from '#test/harness/logs.ts';
import { type Ended, run } from '#test/harness/program.ts';
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
import { introduce, presentIdentity, presentTenant, virtualNodeAppears } from './broker-part.ts';
import { tokensIn, tokensInObjects } from './clear-tokens.ts';
import type { More, Pair } from './clusters.ts';

/** In the place of the address in the external range, by which consumers reach a provider through the link. */
const at = '127.118.19.1';
const door = `https://${at}:8119`;
const here = name.tenantNamespace('milan');
const there = name.tenantNamespace('rome');
const controlPlane = name.controlPlaneIdentity('milan');
const ofSlice = name.sliceIdentity('milan');
const credential = { namespace: there, name: 'isthmus-credential-peer' };
const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-door-'));

const { log, lines: logged } = recordingLog();

let pair: Pair<TestApiServer>;

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  const further: More = async (deps) =>
    deps.clusterId === 'rome'
      ? []
      : [
          createApiServerProxyController({
            ...deps,
            ids: systemIds,
            systemNamespace,
            apiServerUrl: deps.config.apiServerUrl,
            upstream: { host: '127.0.0.1', port: 1 },
            apiServer: { server: new URL(deps.config.apiServerUrl), ca: deps.config.apiServerCa },
            podIp: at,
            host: at,
          }),
        ];
  const peerBy = async (two: Pair<ApiServer>, resources?: Record<string, string>): Promise<void> => {
    await introduce(two, resources);
    await presentTenant(two, `http://${at}:8118`);
    await annotate(two, 'true');
    await soon('the answer', async () => (await tenantOf(two))?.status?.authParams?.apiServer === door);
    await presentIdentity(two);
    await virtualNodeAppears(two);
  };
  pair = await startUnsignedOffloadingPair({ credentials: 'token', log }, { further, peerBy });
}, 900_000);
afterAll(async () => {
  await pair?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

const tenantOf = ({ provider }: Pair<ApiServer>) => provider.api.get(tenants, { namespace: there, name: 'rome' });
const tenant = () => tenantOf(pair);
const paramsOf = async (of: string) =>
  (await pair.consumer.api.get(identities, { namespace: here, name: of }))?.spec.authParams;

async function kubeconfigOf(of: string): Promise<string> {
  const secret = await pair.consumer.api.get(secrets, { namespace: here, name: name.kubeconfigSecret(of) });
  return Buffer.from(secret?.data?.kubeconfig ?? '', 'base64').toString();
}
/** Without any help of the agent: what it reads is all there is. */
const login = async (kubeconfig: string): Promise<KubeApi> =>
  createKubeApi(await connectKubeconfig(kubeconfig), { clock: pair.clock, log: silentLog }, { retries: 0 });
async function kubectl(of: string, ...args: readonly string[]): Promise<Ended> {
  const file = path.join(scratch, `${of}.kubeconfig`);
  writeFileSync(file, await kubeconfigOf(of), { mode: 0o600 });
  const own = ['--kubeconfig', file, '--cache-dir', path.join(scratch, 'cache')];
  return run(pair.provider.server.kubebox, ['kubectl', ...own, ...args], { timeoutMs: 60_000 });
}
const annotate = ({ provider }: Pair<ApiServer>, value: string | null): Promise<unknown> =>
  provider.api.mergePatch(
    tenants,
    { namespace: there, name: 'rome' },
    { metadata: { annotations: { 'isthmus.dev/front-door': value } } },
  );

test('a provider whose consumer is to come by the front door tells it a URL, a CA and a certificate of its own', async () => {
  const { authParams, conditions } = (await tenant())?.status ?? {};
  expect(Object.keys(authParams ?? {}).sort()).toEqual(['apiServer', 'ca', 'signedCRT']);
  expect(conditions).toContainEqual(
    expect.objectContaining({ type: 'InBandToken', status: 'True', reason: 'FrontDoor' }),
  );
  for (const of of [controlPlane, ofSlice]) {
    expect(Object.keys((await paramsOf(of)) ?? {}).sort()).toEqual(['apiServer', 'ca', 'signedCRT']);
    expect(await kubeconfigOf(of)).toContain(door);
  }
});

test('kubectl comes in by that kubeconfig, as the account of its consumer and of no other', async () => {
  const who = await kubectl(controlPlane, 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}');
  expect([who.stdout, who.stderr]).toEqual([`system:serviceaccount:${there}:isthmus-peer`, '']);
  const slices = await kubectl(controlPlane, 'get', 'resourceslices.authentication.liqo.io', '-n', there, '-o', 'name');
  expect([slices.stdout, slices.stderr]).toEqual(['resourceslice.authentication.liqo.io/milan\n', '']);
  expect((await kubectl(controlPlane, 'get', 'secrets', '-n', there)).stderr).toContain('forbidden');
  expect((await kubectl(controlPlane, 'get', 'pods', '--as', 'admin')).stderr).toContain('acts in its own name');
  const slice = await kubectl(ofSlice, 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}');
  expect(slice.stdout).toBe(`system:serviceaccount:${there}:isthmus-slice-milan`);
});

test('pods are offloaded and reported through the door', async () => {
  await offloadedNamespace(pair, 'shop');
  await pair.consumer.api.create(pods, pod('shop', 'web', { nodeName: 'milan' }));
  await shadowOf(pair.provider.api, 'shop-rome', 'web');
  await podAt(pair.provider.api, 'shop-rome', 'web');
  await report(pair.provider.api, 'shop-rome', 'web', 'Running');
  await soon(
    'its status at home',
    async () => (await pair.consumer.api.get(pods, { namespace: 'shop', name: 'web' }))?.status?.phase === 'Running',
  );
  expect(await isReady(pair.consumer.api, 'milan')).toBe(true);
});

test('a certificate of the cluster itself, and one of the consumer by another authority, open nothing', async () => {
  const [own, cluster] = [await kubeconfigOf(controlPlane), pair.provider.server.kubeconfig];
  const ca = /certificate-authority-data: .*/.exec(own)?.[0].split(' ')[1] ?? '';
  const asAdmin = JSON.parse(cluster) as { clusters: { cluster: Record<string, string> }[] };
  for (const one of asAdmin.clusters)
    one.cluster = { server: door, 'certificate-authority-data': ca.replaceAll('"', '') };
  await expect((await login(JSON.stringify(asAdmin))).list(resourceSlices, { namespace: there })).rejects.toMatchObject(
    { code: 'kube_unreachable' },
  );
  expect(await (await login(own)).list(resourceSlices, { namespace: there })).toHaveLength(1);
});

test('after two thirds of its life the certificate is renewed through the peering itself, and the one before still opens', async () => {
  const [before, kubeconfig] = [await paramsOf(controlPlane), await kubeconfigOf(controlPlane)];
  const slice = (await paramsOf(ofSlice))?.signedCRT;
  pair.clock.advance(2_460_000);
  await eventually('both certificates to be renewed', async () => {
    const now = [(await paramsOf(controlPlane))?.signedCRT, (await paramsOf(ofSlice))?.signedCRT];
    return now[0] !== before?.signedCRT && now[1] !== slice;
  });
  expect(await paramsOf(controlPlane)).toMatchObject({ ca: before?.ca ?? '', apiServer: door });
  for (const one of [kubeconfig, await kubeconfigOf(controlPlane)])
    expect(await (await login(one)).list(resourceSlices, { namespace: there })).toHaveLength(1);
  await pair.consumer.api.create(pods, pod('shop', 'later', { nodeName: 'milan' }));
  await podAt(pair.provider.api, 'shop-rome', 'later');
});

test('no object of either cluster and no line of a log holds a token in the clear', async () => {
  for (const { api } of [pair.consumer, pair.provider]) expect(await tokensInObjects(api)).toEqual([]);
  expect(logged.some((line) => line.includes('front door opened'))).toBe(true);
  expect(logged.flatMap(tokensIn)).toEqual([]);
});

test('deleting the Secret ends every certificate before it at once; the next one is let in', async () => {
  const old = await kubeconfigOf(controlPlane);
  const api = await login(old);
  await revokeUntilRefused(
    () => api.list(resourceSlices, { namespace: there }),
    () => pair.provider.api.delete(secrets, credential),
  );
  const renewed = await soon('another certificate', async () => {
    const { authParams } = (await tenant())?.status ?? {};
    return authParams?.signedCRT !== undefined && !old.includes(authParams.signedCRT) && authParams.signedCRT;
  });
  await expect((await login(old)).list(resourceSlices, { namespace: there })).rejects.toMatchObject({
    code: 'kube_unauthorized',
  });
  await presentIdentity(pair);
  await soon('the kubeconfig', async () => (await kubeconfigOf(controlPlane)).includes(renewed));
  const next = await login(await kubeconfigOf(controlPlane));
  expect(await next.list(resourceSlices, { namespace: there })).toHaveLength(1);
});

test('without the annotation the door is closed, and the consumer gets what this cluster gives to others', async () => {
  const api = await login(await kubeconfigOf(controlPlane));
  await annotate(pair, null);
  await soon('tokens', async () => (await tenant())?.status?.authParams?.sealedToken !== undefined);
  await expect(api.list(resourceSlices, { namespace: there })).rejects.toMatchObject({ code: 'kube_unreachable' });
  const { authParams } = (await tenant())?.status ?? {};
  expect(authParams).toMatchObject({ apiServer: pair.provider.server.url, proxyURL: `http://${at}:8118` });
  expect(authParams).not.toHaveProperty('signedCRT');
});
