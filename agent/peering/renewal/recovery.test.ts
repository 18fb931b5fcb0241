/** A consumer whose certificate has ended, with the provider's proxy behind real sockets: what it takes over there, and what it does not. */
import { createPublicKey, type KeyObject, webcrypto } from 'node:crypto';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { SignJWT } from 'jose';
import { afterEach, expect, test } from 'vitest';
import { ProxyAuthorizer } from '#agent/api-proxy/authorizer.ts';
import { startApiProxy } from '#agent/api-proxy/server.ts';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { readSealedToken, sealToken } from '#agent/pki/sealed-token.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import type { Renew } from '#shared/schema/liqo/renew.ts';
import { eventually } from '#test/harness/eventually.ts';
import { RememberingCluster } from '#test/harness/remembering-cluster.ts';
import { endOf, objection, recoveryHost } from './decide.ts';
import { createRecoveryController } from './recovery.ts';

const [hour, namespace] = [3_600_000, 'liqo-tenant-milan'] as const;
const rome = generateClusterKeys();
const foreignOwner = generateClusterKeys();
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** From the signer of milan, for the given key, valid until then. */
async function certificate(endMs: number, publicKey = rome.publicKey, user = 'rome'): Promise<string> {
  const signer = await webcrypto.subtle.generateKey('Ed25519', true, ['sign', 'verify']);
  const der = createPublicKey(publicKey).export({ type: 'spki', format: 'der' });
  const made = await x509.X509CertificateGenerator.create(
    {
      subject: `CN=${user}, O=liqo.io`,
      issuer: 'CN=milan',
      publicKey: await webcrypto.subtle.importKey('spki', der, 'Ed25519', true, ['verify']),
      signingKey: (signer as webcrypto.CryptoKeyPair).privateKey,
      signingAlgorithm: { name: 'Ed25519' } as never,
      notBefore: new Date(endMs - 2 * hour),
      notAfter: new Date(endMs),
    },
    webcrypto,
  );
  return `${made.toString('pem')}\n`;
}

const metadata = (name: string) => ({ name, namespace, labels: { 'liqo.io/remote-cluster-id': 'milan' } });
const identityWith = (pem: string): Identity => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'Identity',
  metadata: metadata('controlplane-milan'),
  spec: {
    clusterID: 'milan',
    type: 'ControlPlane',
    authParams: { ca: 'Y2E=', apiServer: 'https://192.0.2.1:6443', signedCRT: toBase64(pem) },
  },
});
const renewAt = (recoveryIP?: string): Renew => ({
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'Renew',
  metadata: metadata('controlplane-milan'),
  spec: { consumerClusterID: 'rome', identityType: 'ControlPlane' },
  status: { ...(recoveryIP && { recoveryIP }) },
});
/** Milan's external range is 10.70.0.0/16 there and `view` here. */
const configurationWith = (view?: string): Configuration => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'Configuration',
  metadata: metadata('milan'),
  spec: { remote: { cidr: { pod: ['10.60.0.0/16'], external: ['10.70.0.0/16'] } } },
  status: view ? { remote: { cidr: { pod: ['10.61.0.0/16'], external: [view] } } } : {},
});

/** The proxy of milan, which knows rome by this key. */
async function startMilan(ready: string | undefined, known = rome.publicKey) {
  const nonce = 'a-nonce-of-this-run';
  const keys: readonly KeyObject[] = [createPublicKey(known)];
  const asked: string[] = [];
  const authorizer = new ProxyAuthorizer({
    clusterId: 'milan',
    targets: new Set(),
    nonce,
    clock: systemClock,
    keysOf: (consumer, errand) => (consumer === 'rome' && errand === 'certificate' ? keys : []),
  });
  const milan = await startApiProxy({
    authorizer: {
      async authorize(caller) {
        const verdict = await authorizer.authorize(caller);
        asked.push(verdict.pass ? 'pass' : String(verdict.status));
        return verdict;
      },
    },
    nonce,
    credentialFor: () => ready,
    upstream: { host: '127.0.0.1', port: 1 },
    port: 0,
    host: '127.0.0.1',
    clock: systemClock,
    log: silentLog,
  });
  closers.push(() => milan.close());
  return { port: milan.port, asked };
}

/** Rome, with these objects; the proxy is where the wire of 10.70.7.7 ends. */
function startRome(objects: readonly KubeObject[], recoveryPort: number) {
  const keys = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'authentication-keys', namespace: 'liqo' },
    data: { privateKey: toBase64(rome.privateKey), publicKey: toBase64(rome.publicKey) },
  };
  const memory = new RememberingCluster();
  for (const object of [keys, ...objects]) memory.put(object);
  const controller = createRecoveryController({
    cluster: memory.cluster,
    clusterId: 'rome',
    config: { apiServerUrl: '', apiServerCa: '', systemNamespace: 'liqo', credentials: 'certificate' },
    clock: systemClock,
    ids: systemIds,
    log: silentLog,
    recoveryPort,
  });
  const stop = new AbortController();
  const ended = controller.run(stop.signal);
  closers.push(async () => {
    stop.abort();
    await ended;
  });
  controller.enqueue(`${namespace}/controlplane-milan`);
  return { memory, held: async () => memory.cluster.api.get(identities, { namespace, name: 'controlplane-milan' }) };
}

/** By way of the address under which rome knows 10.70.0.1. */
const reached = [renewAt('10.70.0.1'), configurationWith('127.0.0.0/16')];

test('a certificate that has ended is replaced by the one that the provider holds ready, and by nothing else of it', async () => {
  const next = await certificate(Date.now() + hour);
  const { port } = await startMilan(next);
  const before = identityWith(await certificate(Date.now() - 1_000));
  const { held } = startRome([before, ...reached], port);
  await eventually('the next certificate', async () => {
    const spec = (await held())?.spec;
    return spec?.authParams.signedCRT === toBase64(next) && spec;
  });
  expect((await held())?.spec).toEqual({
    ...before.spec,
    authParams: { ...before.spec.authParams, signedCRT: toBase64(next) },
  });
});

const tokenOf = (endMs: number, account = 'isthmus-peer'): Promise<string> =>
  new SignJWT({ sub: `system:serviceaccount:liqo-tenant-rome:${account}`, exp: Math.floor(endMs / 1000) })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.alloc(32));
const sealedFor = async (endMs: number, to = rome.publicKey, account?: string): Promise<string> =>
  sealToken(await tokenOf(endMs, account), createPublicKey(to), endMs);
const identityWithToken = (sealedToken: string): Identity => {
  const { spec, ...rest } = identityWith('');
  const { signedCRT: _, ...place } = spec.authParams;
  return { ...rest, spec: { ...spec, namespace: 'liqo-tenant-rome', authParams: { ...place, sealedToken } } };
};

test('a token that has ended is replaced by the one that the provider has sealed to this cluster', async () => {
  const next = await sealedFor(Date.now() + hour);
  const { port } = await startMilan(next);
  const { held } = startRome([identityWithToken(await sealedFor(Date.now() - 2_000)), ...reached], port);
  await eventually('the next token', async () => (await held())?.spec.authParams.sealedToken === next);
  const { tokenExpiration, apiServer } = (await held())?.spec.authParams ?? {};
  expect(Date.parse(tokenExpiration ?? '')).toBe(readSealedToken(next)?.endMs);
  expect(apiServer).toBe('https://192.0.2.1:6443');
});

test.each([
  ['sealed to another key', () => sealedFor(Date.now() + hour, foreignOwner.publicKey)],
  ['of another account', () => sealedFor(Date.now() + hour, rome.publicKey, 'isthmus-slice-milan')],
  ['ended, too', () => sealedFor(Date.now() - 2_000)],
])('a token that is handed out %s is not taken', async (_what, make) => {
  const { port, asked } = await startMilan(await make());
  const ended = await sealedFor(Date.now() - 2_000);
  const { held } = startRome([identityWithToken(ended), ...reached], port);
  await eventually('it to have been handed out', () => asked.filter((one) => one === 'pass').length >= 2, {
    withinMs: 20_000,
  });
  expect((await held())?.spec.authParams.sealedToken).toBe(ended);
});

test('a valid certificate is not renewed through the proxy', async () => {
  const { port, asked } = await startMilan(await certificate(Date.now() + hour));
  const soon = await certificate(Math.floor(Date.now() / 1000) * 1000 + 2_000);
  const { held } = startRome([identityWith(soon), ...reached], port);
  expect(asked).toEqual([]);
  await eventually('it to be replaced, once it has ended', async () => {
    return (await held())?.spec.authParams.signedCRT !== toBase64(soon);
  });
  expect(Date.now()).toBeGreaterThan(endOf(identityWith(soon)) ?? Number.POSITIVE_INFINITY);
  expect(asked).toEqual(['407', 'pass']);
});

test('a provider that knows another key, or has let this consumer go, hands out nothing', async () => {
  const ended = await certificate(Date.now() - 1_000);
  const { port, asked } = await startMilan(await certificate(Date.now() + hour), foreignOwner.publicKey);
  const { held } = startRome([identityWith(ended), ...reached], port);
  await eventually('it to have asked', () => asked.length >= 2);
  expect(asked.slice(0, 2)).toEqual(['407', '407']);
  expect((await held())?.spec.authParams.signedCRT).toBe(toBase64(ended));
});

test('an answer counts only if it is a certificate that lasts, of the same name, for the same key', async () => {
  const now = Date.now();
  const held = identityWith(await certificate(now - 1_000));
  expect(objection(await certificate(now + hour), held, now)).toBeUndefined();
  for (const [answer, why] of [
    [await certificate(now + hour, foreignOwner.publicKey), 'another key'],
    [await certificate(now + hour, rome.publicKey, 'admin'), 'another name'],
    [await certificate(now - 500), 'has ended'],
    ['<html>', 'no certificate'],
    ['', 'no certificate'],
  ] as const)
    expect(objection(answer, held, now)).toContain(why);
});

test.each([
  ['10.70.3.4', '10.71.0.0/16', '10.71.3.4'],
  ['10.70.3.4', undefined, undefined],
  ['127.0.0.1', '10.71.0.0/16', undefined],
  ['169.254.169.254', '10.71.0.0/16', undefined],
  ['10.60.0.5', '10.71.0.0/16', undefined],
  [undefined, '10.71.0.0/16', undefined],
  ['nonsense', '10.71.0.0/16', undefined],
])('a provider that says to come to %s, with its external range seen as %s, is met at %s', (said, view, host) => {
  expect(recoveryHost(renewAt(said), configurationWith(view))).toBe(host);
  expect(recoveryHost(renewAt(said), undefined)).toBeUndefined();
});
