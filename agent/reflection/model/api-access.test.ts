import { expect, test } from 'vitest';
import { shadowPod } from '#agent/offloading/consumer/pods/shadow-pod-object.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { apiAccessOf, reflectedRootCa, tokenKey, tokenRequests, tokenSecretName } from './api-access.ts';

const token = { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } };
const other = { serviceAccountToken: { path: 'vault', audience: 'vault' } };
const rootCa = { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } };
const namespace = { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } };
const namespaceHere = {
  downwardAPI: {
    items: [{ path: 'namespace', fieldRef: { fieldPath: "metadata.annotations['isthmus.dev/local-namespace']" } }],
  },
};
const access = { name: 'kube-api-access-x1', projected: { sources: [token, rootCa, namespace] } };
const home = { port: 443, addresses: ['10.70.0.1'] };

function pod(spec: Record<string, unknown> = {}, annotations: Record<string, string> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-1', namespace: 'demo', annotations },
    spec: { containers: [{ name: 'app', image: 'i:1' }], serviceAccountName: 'here', volumes: [access], ...spec },
  } as Pod;
}
const forge = (local: Pod, at: typeof home | undefined = home) =>
  shadowPod({
    pod: local,
    remoteNamespace: 'demo-cons',
    consumer: 'cons-1',
    provider: 'prov',
    nodeName: 'vn1',
    home: at,
  }).spec.pod;
const support = (value: string) => ({ 'liqo.io/api-server-support': value });

test.each([
  { asked: undefined, at: home, is: 'token' },
  { asked: 'strange', at: home, is: 'token' },
  { asked: undefined, at: undefined, is: 'disabled' },
  { asked: 'disabled', at: home, is: 'disabled' },
  { asked: 'Remote', at: home, is: 'remote' },
  { asked: 'remote', at: undefined, is: 'remote' },
])('annotation $asked with the home API $at gives access $is', ({ asked, at, is }) => {
  expect(apiAccessOf(pod({}, asked === undefined ? {} : support(asked)), at)).toBe(is);
});

test.each([
  { consumer: 'cons', is: 'kube-root-ca.crt.cons' },
  { consumer: 'consumer', is: 'kube-root-ca.crt.consu' },
  { consumer: 'milk-a-cow', is: 'kube-root-ca.crt.milk-a' },
])('B090: the root CA of $consumer is called $is, which is a valid name', ({ consumer, is }) => {
  expect(reflectedRootCa(consumer)).toBe(is);
});

test('B027, B090: tokens come from the Secret of the pod, the root CA under its own name, and the rest stays', () => {
  const key = tokenKey('kube-api-access-x1', 'token');
  expect(key).toMatch(/^kube-api-access-x1-[0-9a-f]{6}$/);
  expect(forge(pod())).toMatchObject({ automountServiceAccountToken: false });
  expect(forge(pod()).serviceAccountName).toBeUndefined();
  expect(forge(pod()).volumes).toEqual([
    {
      name: 'kube-api-access-x1',
      projected: {
        sources: [
          { secret: { name: 'web-1-token', items: [{ key, path: 'token' }] } },
          { configMap: { ...rootCa.configMap, name: 'kube-root-ca.crt.cons-a' } },
          namespaceHere,
        ],
      },
    },
  ]);
});

test('a plain volume of the root CA is renamed too', () => {
  const volumes = [{ name: 'ca', configMap: { name: 'kube-root-ca.crt' } }];
  expect(forge(pod({ volumes })).volumes).toEqual([{ name: 'ca', configMap: { name: 'kube-root-ca.crt.cons-a' } }]);
});

test('B028: every container and init container is told where its own API server is, unless it says so itself', () => {
  const own = { name: 'KUBERNETES_SERVICE_HOST', value: 'mine' };
  const field = { name: 'ACCOUNT', valueFrom: { fieldRef: { fieldPath: 'spec.serviceAccountName' } } };
  const spec = forge(
    pod({
      containers: [
        { name: 'a', env: [own] },
        { name: 'b', env: [field] },
      ],
      initContainers: [{ name: 'i' }],
    }),
    { port: 6443, addresses: [] },
  );
  const values = (container: { env?: { name: string; value?: string }[] } | undefined) =>
    Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
  expect(values(spec.containers[0])).toMatchObject({
    KUBERNETES_SERVICE_HOST: 'mine',
    KUBERNETES_SERVICE_PORT: '6443',
  });
  expect(values(spec.containers[1])).toMatchObject({ ACCOUNT: 'here', KUBERNETES_SERVICE_HOST: 'kubernetes.default' });
  expect(values(spec.initContainers?.[0])).toEqual({
    KUBERNETES_SERVICE_HOST: 'kubernetes.default',
    KUBERNETES_SERVICE_PORT: '6443',
    KUBERNETES_PORT: 'tcp://kubernetes.default:6443',
    KUBERNETES_PORT_6443_TCP: 'tcp://kubernetes.default:6443',
    KUBERNETES_PORT_6443_TCP_PROTO: 'tcp',
    KUBERNETES_PORT_6443_TCP_ADDR: 'kubernetes.default',
    KUBERNETES_PORT_6443_TCP_PORT: '6443',
  });
});

test('the name of the API server leads to the address by which the link reaches it', () => {
  const mine = { ip: '1.2.3.4', hostnames: ['h'] };
  expect(forge(pod({ hostAliases: [mine] })).hostAliases).toEqual([
    mine,
    { ip: '10.70.0.1', hostnames: ['kubernetes.default', 'kubernetes.default.svc'] },
  ]);
  expect(forge(pod({}, support('disabled'))).hostAliases).toBeUndefined();
});

test('B086: with access disabled the tokens are gone, nothing points to an API server, and every mount stays valid', () => {
  const volumes = [access, { name: 'only', projected: { sources: [token] } }];
  const spec = forge(pod({ volumes }, support('disabled')));
  expect(spec.volumes).toEqual([
    {
      name: 'kube-api-access-x1',
      projected: {
        sources: [
          { configMap: { ...rootCa.configMap, name: 'kube-root-ca.crt.cons-a', optional: true } },
          namespaceHere,
        ],
      },
    },
    { name: 'only', emptyDir: {} },
  ]);
  expect(spec.containers[0]?.env).toBeUndefined();
  expect(JSON.stringify(spec)).not.toMatch(/serviceAccountToken"|web-1-token|KUBERNETES_/);
});

test("B087: a pod that asks for the provider's API keeps its volumes and names its account there", () => {
  const spec = forge(pod({}, { ...support('remote'), 'liqo.io/remote-service-account-name': 'there' }));
  expect(spec).toMatchObject({ serviceAccountName: 'there', automountServiceAccountToken: true, volumes: [access] });
  expect(forge(pod({}, support('remote'))).serviceAccountName).toBe('here');
});

test('the tokens that a pod asks for, with audience and lifetime', () => {
  const volumes = [access, { name: 'v', projected: { sources: [other] } }];
  expect(tokenRequests({ volumes } as never)).toEqual([
    { key: tokenKey('kube-api-access-x1', 'token'), seconds: 3607 },
    { key: tokenKey('v', 'vault'), seconds: 3600, audience: 'vault' },
  ]);
});

test('the Secret of the longest pod name has a valid name', () => {
  expect(tokenSecretName('a'.repeat(253))).toHaveLength(253);
});
