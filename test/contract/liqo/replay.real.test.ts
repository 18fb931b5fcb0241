/**
 * Exchanges with Liqo 1.2.0, both directions: what Liqo and its liqoctl write is written, in their order, to real API servers, and what Isthmus
 * writes is what Liqo expects. Liqo itself does not run here: README.md says where the exchanges come from.
 */

import { generateKeyPairSync, sign, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildCertificateRequest, readCertificateRequest } from '#agent/pki/certificate-request.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import * as core from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { peeringPolicies, ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startApiServer } from '#test/harness/kube-apiserver.ts';
import { serveOwnKinds } from '#test/harness/own-kinds.ts';
import { startCluster } from '#test/system/declarative/cluster.ts';
import { type Exchange, filled, type Manifest, type Step, sliceUserOf, unmet, valueAt } from './exchange.ts';

const deps = { clock: systemClock, log: silentLog };
const ranges = { podCidr: '10.200.0.0/16', externalCidr: '10.70.0.0/16', nodeAddress: '192.0.2.11' };
const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString('base64');
const ending: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

const types = [
  ...allKinds,
  core.namespaces,
  core.secrets,
  core.clusterRoles,
  core.roleBindings,
  core.clusterRoleBindings,
] as readonly ResourceType<KubeObject>[];

function typeOf({ apiVersion, kind }: Manifest): ResourceType<KubeObject> {
  const found = types.find((type) => apiVersionOf(type) === apiVersion && type.kind === kind);
  if (found === undefined) throw new Error(`no kind ${apiVersion} ${kind}`);
  return found;
}
const refOf = ({ metadata: { name, namespace } }: Manifest) => ({ name, ...(namespace && { namespace }) });

interface Stage {
  /** API server of a cluster for one of Liqo's writers; the steps of Isthmus are looked at as `administrator`. */
  readonly api: (at: Step['at'], by: string) => Promise<KubeApi> | KubeApi;
  readonly known: Map<string, string>;
  /** What later steps need besides what they keep, worked out after each step. */
  readonly learn: (known: Map<string, string>) => Promise<void> | void;
}

async function play({ steps }: Exchange, { api, known, learn }: Stage): Promise<void> {
  for (const [i, step] of steps.entries()) {
    const what = `step ${i + 1} (${step.from}) by ${step.by}`;
    try {
      await perform(step, what, await api(step.at, step.by), known);
    } catch (error) {
      throw new Error(`${what}: ${messageOf(error)}`, { cause: error });
    }
    await learn(known);
  }
}

async function perform(step: Step, what: string, api: KubeApi, known: Map<string, string>): Promise<void> {
  if (step.create) {
    const { status: _, ...object } = filled(step.create, known) as Manifest & { status?: unknown };
    await api.create(typeOf(step.create), object as KubeObject);
  }
  for (const [wanted, subresource] of [[step.update], [step.status, 'status']] as const) {
    if (wanted === undefined) continue;
    const { spec, status } = filled(wanted, known) as Manifest & { spec?: object; status?: object };
    // A concurrent writer of the object wins, as with any GET and PUT.
    await eventually(what, async () => {
      const now = (await api.get(typeOf(wanted), refOf(wanted))) as
        | (KubeObject & { spec?: object; status?: object })
        | undefined;
      if (now === undefined) throw new Error('there is no such object');
      const next = {
        ...now,
        ...(spec && { spec: { ...now.spec, ...spec } }),
        ...(status && { status: { ...now.status, ...status } }),
      };
      await api.update(typeOf(wanted), next, subresource ? { subresource } : {});
      return true;
    });
  }
  if (step.delete) await api.delete(typeOf(step.delete), refOf(step.delete));
  const { expect: wanted, absent } = step;
  if (wanted) {
    const object = await eventually(what, async () => {
      const found = await api.get(typeOf(wanted), refOf(filled(wanted, known)));
      const missing = unmet(filled(wanted, known), found);
      if (missing.length > 0) throw new Error(missing.join('; '));
      return found;
    });
    for (const [name, at] of Object.entries(step.keep ?? {})) known.set(name, valueAt(object, at));
  }
  if (absent)
    await eventually(what, async () => (await api.get(typeOf(absent), refOf(filled(absent, known)))) === undefined);
}

const read = async (name: string): Promise<Exchange> =>
  parse(await readFile(path.join(import.meta.dirname, name), 'utf8')) as Exchange;

test('a consumer that runs Liqo 1.2.0 authenticates, gets resources, is cordoned, and leaves nothing but its namespace', async () => {
  const milan = await startCluster({ id: 'milan', ...ranges });
  ending.push(() => milan.stop());
  const keys = generateKeyPairSync('ed25519');
  const privateKey = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const sliceUser = sliceUserOf('milan', 'rome');
  const known = new Map([
    ['apiServer', milan.server.url],
    ['publicKey', base64(keys.publicKey.export({ type: 'spki', format: 'pem' }))],
    [
      'controlPlaneRequest',
      base64(buildCertificateRequest({ commonName: 'rome', organization: 'liqo.io' }, privateKey)),
    ],
    ['sliceRequest', base64(buildCertificateRequest({ commonName: sliceUser, organization: 'rome' }, privateKey))],
    ['sliceUser', sliceUser],
  ]);
  let replicator: KubeApi | undefined;
  async function asConsumer(): Promise<KubeApi> {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'milan', cluster: { server: milan.server.url, 'certificate-authority-data': base64(milan.server.ca) } },
      ],
      users: [
        {
          name: 'rome',
          user: { 'client-certificate-data': known.get('certificate'), 'client-key-data': base64(privateKey) },
        },
      ],
      contexts: [{ name: 'it', context: { cluster: 'milan', user: 'rome' } }],
      'current-context': 'it',
    };
    const connection = await connectKubeconfig(JSON.stringify(config));
    ending.push(() => connection.close());
    return createKubeApi(connection, deps);
  }
  await play(await read('liqo-1.2.0-consumer.yaml'), {
    known,
    async api(_at, by) {
      if (by !== 'replicator') return milan.api;
      replicator ??= await asConsumer();
      return replicator;
    },
    learn() {
      const nonce = known.get('nonce');
      if (nonce === undefined) return;
      known.set('signature', base64(sign(null, Buffer.from(nonce, 'base64'), keys.privateKey)));
    },
  });
  // Liqo's nonce is the base64 text of 64 bytes, and that text is what is signed.
  expect(Buffer.from(Buffer.from(known.get('nonce') ?? '', 'base64').toString(), 'base64')).toHaveLength(64);
  expect(await milan.api.list(tenants)).toEqual([]);
}, 240_000);

test('with a provider that runs Liqo 1.2.0 slice, virtual node and certificates come of what it answers, and all ends with them', async () => {
  const rome = await startCluster({ id: 'rome', ...ranges });
  ending.push(() => rome.stop());
  const liqo = await startApiServer();
  const stop = new AbortController();
  ending.push(async () => {
    stop.abort();
    await liqo.stop();
  });
  const milan = openCluster(await connectKubeconfig(liqo.kubeconfig), deps, stop.signal);
  await serveOwnKinds(liqo, milan.api);
  // Liqo believes every label that a provider claims; here the consumer lists them.
  await rome.api.create(peeringPolicies, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'believing' },
    spec: {
      tenants: ['*'],
      asConsumer: { enabled: true, autoAccept: true, peers: ['*'], nodeLabels: { region: ['south'] } },
      reflectedKinds: [...ReflectedKind.options],
    },
  });
  const own = await eventually('the keys of the consumer', async () => {
    const secret = await rome.api.get(core.secrets, { namespace: 'liqo', name: 'authentication-keys' });
    return secret?.data?.privateKey && Buffer.from(secret.data.privateKey, 'base64').toString();
  });
  const nonce = base64(Buffer.alloc(64, 7));
  const request = buildCertificateRequest({ commonName: 'rome', organization: 'liqo.io' }, own);
  const first = await issue(milan.api, request);
  const known = new Map([
    ['liqoNonce', nonce],
    ['signature', base64(sign(null, Buffer.from(nonce), own))],
    ['liqoApiServer', liqo.url],
    ['liqoCa', base64(liqo.ca)],
    ['controlPlaneCertificate', first],
  ]);
  let subject: unknown;
  await play(await read('liqo-1.2.0-provider.yaml'), {
    known,
    api: (at) => (at === 'milan' ? milan.api : rome.api),
    async learn() {
      const requested = known.get('sliceRequest');
      if (requested === undefined || known.has('sliceCertificate')) return;
      const pem = Buffer.from(requested, 'base64').toString();
      subject = readCertificateRequest(pem);
      known.set('sliceCertificate', await issue(milan.api, pem));
      // To the second, as certificates count: the next one is a later one.
      known.set(
        'renewedCertificate',
        await eventually('a later certificate', () => laterThan(first, () => issue(milan.api, request))),
      );
    },
  });
  expect(subject).toMatchObject({ commonName: sliceUserOf('milan', 'rome'), organization: 'rome' });
}, 240_000);

async function laterThan(first: string, next: () => Promise<string>): Promise<string | undefined> {
  const found = await next();
  const end = (certificate: string): number =>
    Date.parse(new X509Certificate(Buffer.from(certificate, 'base64')).validTo);
  return end(found) > end(first) ? found : undefined;
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
