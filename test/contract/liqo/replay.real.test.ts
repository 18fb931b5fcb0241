/**
 * Exchanges with Liqo 1.2.0, both directions: what Liqo and its liqoctl write is written, in their order, to real API servers, and what
 * Isthmus writes is what Liqo went on from. README.md says where they come from.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startAdmission } from '#agent/admission/admission.ts';
import { createVirtualNodeController } from '#agent/offloading/consumer/virtual-node/controller.ts';
import { NodeMetrics } from '#agent/offloading/consumer/virtual-node/node-metrics.ts';
import { createOffloadingControllers } from '#agent/offloading/offloading.ts';
import { tokenOpener } from '#agent/peering/keys/token-opener.ts';
import { buildCertificateRequest } from '#agent/pki/certificate-request.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createHooks } from '#agent/webhooks.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import * as core from '#shared/domain/core-kinds.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { Registry } from '#shared/metrics/registry.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startApiServer } from '#test/harness/kube-apiserver.ts';
import { serveOwnKinds } from '#test/harness/own-kinds.ts';
import { type DeclaredCluster, startCluster } from '#test/system/declarative/cluster.ts';
import type { More } from '#test/system/peering/clusters.ts';
import { believing } from './believing.ts';
import { type Exchange, sliceUserOf } from './exchange.ts';
import { play } from './played.ts';

const deps = { clock: systemClock, log: silentLog };
const ranges = { podCidr: '10.200.0.0/16', externalCidr: '10.70.0.0/16', nodeAddress: '192.0.2.11' };
const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64');
const decoded = (text: string): string => Buffer.from(text, 'base64').toString();
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const offloading: More = async ({ cluster, clusterId, clock, log }) => {
  const common = { cluster, clusterId, clock, log, systemNamespace };
  return [
    ...createOffloadingControllers(common),
    createVirtualNodeController({
      ...common,
      ids: systemIds,
      podIp: '127.0.0.1',
      kubeletPortBase: 16_250,
      nodeMetrics: new NodeMetrics(new Registry(), clock),
      connectPeer: createConnectCluster({ clock, log, openToken: tokenOpener(cluster.api, systemNamespace) }),
    }),
    await startAdmission({ ...common, hooks: createHooks(common), host: '127.0.0.1', port: 0, callHost: '127.0.0.1' }),
  ];
};

async function startMilan(): Promise<DeclaredCluster> {
  const milan = await startCluster({ id: 'milan', ...ranges, more: offloading, credentials: 'auto' });
  ending.push(() => milan.stop());
  return milan;
}

/** What the node of a provider gives a pod. */
const byNodeOf = (provider: string): readonly (readonly [string, string])[] => [
  ['podIp', '10.1.0.9'],
  [`${provider}HostIp`, '198.18.1.11'],
  ['container', 'containerd://1'],
  ['imageId', 'sha256:1'],
];

const read = async (name: string): Promise<Exchange> =>
  parse(await readFile(path.join(import.meta.dirname, name), 'utf8')) as Exchange;

const publicKeyOf = (privateKey: KeyObject): string =>
  base64(createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }));
const pemOf = (privateKey: KeyObject): string => privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** What liqoctl makes for a consumer with its key, of what is known. */
function byConsumer(word: string, privateKey: KeyObject, known: ReadonlyMap<string, string>): string | undefined {
  const nonce = known.get('nonce');
  if (word === 'publicKey') return publicKeyOf(privateKey);
  if (word === 'signature' && nonce !== undefined) return base64(sign(null, Buffer.from(nonce, 'base64'), privateKey));
  return undefined;
}

function requestFor(subject: readonly string[], privateKey: KeyObject): string {
  const [commonName = '', organization = ''] = subject;
  return base64(buildCertificateRequest({ commonName, organization }, pemOf(privateKey)));
}

test('a consumer that runs Liqo 1.2.0 authenticates, gets resources, runs a pod, gets other certificates, is cordoned, and leaves nothing', async () => {
  const milan = await startMilan();
  const { privateKey } = generateKeyPairSync('ed25519');
  const { server } = milan;
  const known = new Map([['milanApiServer', server.url], ['milanCa', base64(server.ca)], ...byNodeOf('milan')]);
  const connected = new Map<string, KubeApi>();
  /** With the last certificate that Isthmus gave this user. */
  async function asUser(subject: string): Promise<KubeApi> {
    const last = [...known].filter(([word]) => word.startsWith(`certificate ${subject}`)).at(-1)?.[1];
    if (last === undefined) throw new Error(`${subject} has no certificate yet`);
    const before = connected.get(last);
    if (before !== undefined) return before;
    const cluster = { server: server.url, 'certificate-authority-data': base64(server.ca) };
    const user = { 'client-certificate-data': last, 'client-key-data': base64(pemOf(privateKey)) };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'milan', cluster }],
      users: [{ name: 'rome', user }],
      contexts: [{ name: 'it', context: { cluster: 'milan', user: 'rome' } }],
      'current-context': 'it',
    };
    const connection = await connectKubeconfig(JSON.stringify(config));
    ending.push(() => connection.close());
    const api = createKubeApi(connection, deps);
    connected.set(last, api);
    return api;
  }
  /** Time does that otherwise: without the certificate that it keeps the agent has another one signed. */
  const renew = (of: string): Promise<unknown> =>
    milan.api.delete(core.secrets, { namespace: 'liqo-tenant-rome', name: `liqo-remote-certificate${of}` });
  await play(await read('liqo-1.2.0-consumer.yaml'), {
    known,
    api(_at, by) {
      if (['isthmus', 'liqoctl', 'kubelet'].includes(by)) return milan.api;
      return asUser(by === 'virtual-kubelet' ? `${sliceUserOf('milan', 'rome')} rome` : 'rome liqo.io');
    },
    async make(word) {
      const [what, ...subject] = word.split(' ');
      if (what === 'certificate' && subject.length > 2) await renew(subject[0] === 'rome' ? '' : '-milan');
      return what === 'request' ? requestFor(subject, privateKey) : byConsumer(word, privateKey, known);
    },
  });
  // Liqo's nonce is the base64 text of 64 bytes, and that text is what is signed.
  expect(Buffer.from(decoded(known.get('nonce') ?? ''), 'base64')).toHaveLength(64);
  expect(await milan.api.list(tenants)).toEqual([]);
}, 240_000);

test('with a provider that runs Liqo 1.2.0 slice, virtual node, a pod that runs and certificates come of what it answers, and all ends with them', async () => {
  const milan = await startMilan();
  const liqo = await startApiServer();
  const stop = new AbortController();
  ending.push(async () => {
    stop.abort();
    await liqo.stop();
  });
  const rome = openCluster(await connectKubeconfig(liqo.kubeconfig), deps, stop.signal);
  await serveOwnKinds(liqo, rome.api);
  await milan.api.create(peeringPolicies, believing);
  const own = await eventually('the keys of the consumer', async () => {
    const secret = await milan.api.get(core.secrets, { namespace: systemNamespace, name: 'authentication-keys' });
    const pem = secret?.data?.privateKey;
    return pem === undefined ? undefined : createPrivateKey(decoded(pem));
  });
  const known = new Map([
    ['romeApiServer', liqo.url],
    ['romeCa', base64(liqo.ca)],
    ['nonce', base64(base64(Buffer.alloc(64, 7)))],
    ...byNodeOf('rome'),
  ]);
  await play(await read('liqo-1.2.0-provider.yaml'), {
    known,
    api: (at) => (at === 'milan' ? milan.api : rome.api),
    async make(word) {
      const [what, commonName, organization] = word.split(' ');
      const request = known.get(`request ${commonName} ${organization}`);
      if (what !== 'certificate' || request === undefined) return byConsumer(word, own, known);
      const before = [...known]
        .filter(([other]) => other.startsWith(`certificate ${commonName} `))
        .map(([, one]) => one);
      // To the second, as certificates count: each is a later one.
      return eventually('a later certificate', () => laterThan(before, () => issue(rome.api, decoded(request))));
    },
  });
  expect(known.has(`certificate ${sliceUserOf('rome', 'milan')} milan`)).toBe(true);
}, 240_000);

async function laterThan(before: readonly string[], next: () => Promise<string>): Promise<string | undefined> {
  const found = await next();
  const end = (certificate: string): number => Date.parse(new X509Certificate(decoded(certificate)).validTo);
  return before.every((one) => end(found) > end(one)) ? found : undefined;
}

/** As Liqo's identity manager has it signed (docs/design/control-plane.md#which-name-does-a-certificate-carry). Base64 of the PEM. */
async function issue(api: KubeApi, request: string): Promise<string> {
  const type = core.certificateSigningRequests;
  const made = await api.create(type, {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { generateName: 'liqo-identity-', labels: { 'liqo.io/remote-tenant-csr': 'true' } },
    spec: {
      request: base64(request),
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['digital signature', 'key encipherment', 'client auth'],
    },
  } as never);
  const conditions = [{ type: 'Approved', status: 'True', reason: 'IdentityManagerApproval', message: 'approved' }];
  await api.update(type, { ...made, status: { conditions } } as never, { subresource: 'approval' });
  return eventually('the certificate', async () => {
    const { status } = ((await api.get(type, { name: made.metadata.name })) ?? {}) as {
      status?: { certificate?: string };
    };
    return status?.certificate;
  });
}
