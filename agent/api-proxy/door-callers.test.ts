/** Whose certificate opens the front door: by Secrets and Tenants as they are now. */
import { createPublicKey } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { controlPlaneSubject } from '#agent/model/peer-user.ts';
import { buildDoorSecret, digestOf, doorOf } from '#agent/peering/credentials/front-door.ts';
import { generateClusterKeys } from '#agent/pki/cluster-keys.ts';
import { createDoorAuthority, issueDoorClient } from '#agent/pki/door-certificates.ts';
import { readPem, toBase64 } from '#agent/pki/pem.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { doorCallers, doorHosts, rememberedCallers } from './door-callers.ts';

const now = Date.UTC(2026, 0, 1);
const authority = createDoorAuthority(now);
const issue = (): string =>
  issueDoorClient(authority, controlPlaneSubject('rome'), createPublicKey(generateClusterKeys().publicKey), {
    now,
    seconds: 3600,
  });
const [current, former] = [issue(), issue()];
const digest = (pem: string): string => digestOf(readPem(pem, 'CERTIFICATE'));
const proxyURL = 'http://10.71.0.9:8118';

const tenant = (change: { spec?: object; metadata?: object } = {}): Tenant =>
  ({
    metadata: {
      name: 'rome',
      namespace: 'liqo-tenant-rome',
      annotations: { 'isthmus.dev/front-door': 'true' },
      ...change.metadata,
    },
    spec: { clusterID: 'rome', proxyURL, ...change.spec },
  }) as unknown as Tenant;
const secret = (metadata: object = {}, slice?: string): Secret => {
  const built = buildDoorSecret(
    {
      consumer: 'rome',
      namespace: 'liqo-tenant-rome',
      owner: { apiVersion: 'v1', kind: 'Tenant', name: 'rome', uid: 'u' },
      ...(slice !== undefined && { slice }),
    },
    {
      csr: 'Y3Ny',
      certificate: toBase64(current),
      former: toBase64(former),
      issuedAtMs: now,
      apiServer: 'https://10.71.0.9:8119',
      ca: toBase64(authority.certificate),
    },
  );
  return { ...built, metadata: { ...built.metadata, uid: 'secret-uid', ...metadata } } as Secret;
};
const whoIs = (pem: string, secrets: Secret[], tenants: Tenant[]) => doorCallers(secrets, tenants).get(digest(pem));

test.each([
  [undefined, 'isthmus-peer', 'isthmus-credential-peer'],
  ['milan', 'isthmus-slice-milan', 'isthmus-credential-slice-milan'],
])('the certificate of slice %s, and the one before it, are those of account %s', (slice, account, name) => {
  for (const pem of [current, former])
    expect(whoIs(pem, [secret({}, slice)], [tenant()])).toEqual({
      consumer: 'rome',
      namespace: 'liqo-tenant-rome',
      account,
      secret: { name, uid: 'secret-uid' },
    });
  expect(whoIs(issue(), [secret({}, slice)], [tenant()])).toBeUndefined();
});

const labels = secret().metadata.labels;
test.each([
  ['whose Secret is gone', [], [tenant()]],
  ['whose Secret is being deleted', [secret({ deletionTimestamp: 'now' })], [tenant()]],
  ['whose Tenant is gone', [secret()], []],
  ['whose Tenant is being deleted', [secret()], [tenant({ metadata: { deletionTimestamp: 'now' } })]],
  ['whose Tenant is drained', [secret()], [tenant({ spec: { tenantCondition: 'Drained' } })]],
  ['whose Tenant is not annotated', [secret()], [tenant({ metadata: { annotations: {} } })]],
  ['that comes by no link', [secret()], [tenant({ spec: { proxyURL: '' } })]],
  ['that has a proxy of its own', [secret()], [tenant({ spec: { proxyURL: 'http://proxy.example:3128' } })]],
  ['whose Secret is in the namespace of another', [secret({ namespace: 'liqo-tenant-oslo' })], [tenant()]],
  [
    'whose Secret names another consumer',
    [secret({ labels: { ...labels, 'liqo.io/remote-cluster-id': 'oslo' } })],
    [tenant()],
  ],
  [
    'whose Secret names another account',
    [secret({ labels: { ...labels, 'isthmus.dev/credential-of': 'default' } })],
    [tenant()],
  ],
  ['whose Secret has the name of another', [secret({ name: 'isthmus-credential-slice-milan' })], [tenant()]],
  [
    'whose Secret cannot be read',
    [{ ...secret(), data: { ...secret().data, doorCertificate: 'bm9uZQ==', formerDoorCertificate: '' } }],
    [tenant()],
  ],
] as [string, Secret[], Tenant[]][])('a consumer %s is not let in at the door', (_, secrets, tenants) => {
  expect(whoIs(current, secrets, tenants)).toBeUndefined();
});

test('the door is where the consumer knows the proxy of the link, and nowhere else', () => {
  expect(doorOf(tenant())).toEqual({ apiServer: 'https://10.71.0.9:8119' });
  expect(doorHosts([tenant(), tenant({ spec: { proxyURL: 'http://10.9.0.9:8118/' } }), tenant()])).toEqual([
    '10.71.0.9',
    '10.9.0.9',
  ]);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.webUrl(),
        fc.string(),
        fc.ipV4().map((ip) => `http://${ip}:81${ip.length}`),
      ),
      (url) => {
        fc.pre(!/^http:\/\/[\d.]+:8118\/?$/.test(url));
        expect(doorOf(tenant({ spec: { proxyURL: url } }))).toMatchObject({ problem: expect.stringContaining('8118') });
        expect(doorHosts([tenant({ spec: { proxyURL: url } })])).toEqual([]);
      },
    ),
  );
});

test('the callers of the door are found out once for what Secrets and Tenants say, and again when one of them says something else', () => {
  let [secrets, tenants] = [[secret()], [tenant()]];
  const callers = rememberedCallers({ list: () => secrets }, { list: () => tenants });
  const first = callers();
  expect([first.size, callers()]).toEqual([2, first]);
  expect(callers()).toBe(first);
  tenants = [tenant({ spec: { tenantCondition: 'Drained' } })];
  expect(callers().size).toBe(0);
  tenants = [tenant()];
  expect(callers()).toEqual(first);
  secrets = [];
  expect(callers().size).toBe(0);
});
