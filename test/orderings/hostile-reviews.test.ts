/**
 * Admission reviews as hostile users may have them made: every webhook gets objects whose fields are replaced, removed and nested at random. The server
 * answers each one, stays alive, and lets none through that holds what guests may not have.
 */
import https from 'node:https';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdmissionServer, serveAdmission } from '#agent/admission/server.ts';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { createHooks } from '#agent/webhooks.ts';
import type { Cluster } from '#kube/model/types.ts';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { countOf } from '#test/harness/cases.ts';
import { MemoryCluster } from './memory-cluster.ts';

const runs = countOf(100_000, 600);
const guest = 'liqo-tenant-rome-slice';
const secretPath = 's'.repeat(64);
const certificate = issueServingCertificate(['localhost'], Date.now());
const agent = new https.Agent({ keepAlive: true, maxSockets: 4, ca: certificate.certificate, servername: 'localhost' });

/** As a ShadowPod of this guest has them. */
const labels = {
  'offloading.liqo.io/origin': 'rome',
  'offloading.liqo.io/destination': 'milan',
};

let server: AdmissionServer;
let paths: readonly string[];

const stop = new AbortController();
beforeAll(async () => {
  const clock = new ManualClock();
  const owned = {
    labels: { 'liqo.io/remote-cluster-id': 'rome' },
    annotations: { 'liqo.io/managed-by-namespace-map': 'liqo-tenant-rome/milan' },
  };
  const memory = new MemoryCluster(clock, () => 0);
  memory.create(made('Namespace', 'v1', 'apps-rome', owned) as never);
  const quota = { user: guest, resources: { cpu: '100', memory: '100Gi', pods: '100' }, limitsEnforcement: 'None' };
  memory.create({ ...made('Quota', 'offloading.liqo.io/v1beta1', 'q'), spec: quota } as never);
  const opened = memory.open('own', sharedByMany(stop.signal)) as Cluster;
  const refused = async () => ({ status: { allowed: false } });
  const cluster = { ...opened, api: Object.assign(opened.api, { postPath: refused }) } as Cluster;
  const hooks = createHooks({ cluster, clusterId: 'milan', clock });
  while (memory.deliverOne());
  await hooks.synced();
  paths = [...hooks.routes.keys()];
  const deps = { certificate, secretPath, log: silentLog, host: '127.0.0.1', port: 0 };
  server = await serveAdmission({ ...deps, routes: hooks.routes });
});
afterAll(async () => {
  agent.destroy();
  stop.abort();
  await server.close();
});

const made = (kind: string, apiVersion: string, name: string, metadata: object = {}): KubeObject =>
  ({ apiVersion, kind, metadata: { name, ...metadata } }) as KubeObject;

/** What guests may never have, each for itself enough for a refusal. */
const forbidden = {
  '/validate/shadowpods': [
    { spec: { pod: { containers: [{ name: 'c', image: 'i' }], hostNetwork: true } } },
    { spec: { pod: { containers: [{ name: 'c', image: 'i', securityContext: { privileged: true } }] } } },
    { spec: { pod: { containers: [{ name: 'c' }], volumes: [{ name: 'v', hostPath: { path: '/' } }] } } },
    { spec: { pod: { containers: [{ name: 'c', ports: [{ containerPort: 1, hostPort: 22 }] }] } } },
  ],
  '/validate/services': [{ spec: { externalIPs: ['192.0.2.1'] } }],
} as const satisfies Record<string, readonly object[]>;

const junk = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1e308,
    '',
    ' ',
    [],
    {},
    [null],
    [[]],
    { '': null },
    '__proto__',
    '\u0000',
  ),
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom('9'.repeat(400), 'a'.repeat(70_000), '../../..', '{{ . }}', '10.0.0.0/0', '1e99999', '-0'),
);
const word = fc.constantFrom(
  ...['spec', 'pod', 'containers', 'labels', 'annotations', 'finalizers', 'ownerReferences', 'status', 'template'],
  ...['rules', 'tables', 'chains', 'cidr', 'ip', 'clusterID', 'user', 'resources', 'requests', 'cpu', 'endpoints'],
  ...['initContainers', 'affinity', 'nodeSelector', 'tolerations', 'storage', 'remote', 'local', 'ports', '__proto__'],
);
const field = fc.tuple(fc.array(fc.oneof(word, fc.nat(2)), { minLength: 1, maxLength: 5 }), junk);
const review = fc.record({
  fields: fc.array(field, { maxLength: 6 }),
  before: fc.option(fc.array(field, { maxLength: 3 })),
  operation: fc.constantFrom('CREATE', 'CREATE', 'UPDATE', 'DELETE', 'CONNECT', 'create'),
  namespace: fc.constantFrom('apps-rome', 'apps-rome', 'elsewhere', 'liqo', ''),
  user: fc.constantFrom(guest, 'rome', 'system:admin', '', '__proto__'),
});

/** JSON with the value at the path; what is in the way is replaced. */
function put(object: Record<string, unknown>, path: readonly (string | number)[], value: unknown): void {
  let at: Record<string | number, unknown> = object;
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(at, key) || typeof at[key] !== 'object' || at[key] === null)
      Object.defineProperty(at, key, { value: {}, enumerable: true, configurable: true, writable: true });
    at = at[key] as Record<string, unknown>;
  }
  const last = path.at(-1) ?? '';
  Object.defineProperty(at, last, { value, enumerable: true, configurable: true, writable: true });
}

function bodyOf(given: Generated, spec: object, isGuarded: boolean): string {
  const objectWith = (fields: Generated['fields']) => {
    const object: Record<string, unknown> = {
      ...made('Thing', 'v1', 'web', { namespace: given.namespace, labels }),
      ...spec,
    };
    const copy = structuredClone(object);
    // The forbidden part stays: damage goes anywhere else.
    for (const [path, value] of fields) if (!isGuarded || path[0] !== 'spec') put(copy, path, structuredClone(value));
    return copy;
  };
  const request = {
    uid: 'u',
    operation: isGuarded ? 'CREATE' : given.operation,
    namespace: isGuarded ? 'apps-rome' : given.namespace,
    userInfo: { username: isGuarded ? guest : given.user },
    object: objectWith(given.fields),
    ...(isGuarded || given.before === null ? {} : { oldObject: objectWith(given.before) }),
  };
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
}
type Generated = typeof review extends fc.Arbitrary<infer T> ? T : never;

interface Answer {
  readonly status: number;
  readonly allowed: boolean | undefined;
  readonly text: string;
}

const ask = (path: string, body: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const at = { host: '127.0.0.1', port: server.port, path: `/${secretPath}${path}`, method: 'POST', agent };
    const headers = { 'content-length': Buffer.byteLength(body) };
    const request = https.request({ ...at, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => {
        text += piece;
      });
      response.once('end', () => {
        const { response: verdict } = JSON.parse(text) as { response?: { allowed: boolean } };
        resolve({ status: response.statusCode ?? 0, allowed: verdict?.allowed, text });
      });
    });
    request.once('error', reject);
    request.end(body);
  });

test('every webhook answers every generated review with a verdict or with what is malformed', async () => {
  await fc.assert(
    fc.asyncProperty(review, fc.nat(), async (given, n) => {
      const path = paths[n % paths.length] ?? '';
      const { status, allowed, text } = await ask(path, bodyOf(given, {}, false));
      expect([200, 400], text).toContain(status);
      expect(typeof allowed, text).toBe(status === 200 ? 'boolean' : 'undefined');
      // Everything can be looked up here: what a hook stumbles over is the object's fault, and is called that.
      expect(text).not.toContain('kube_unreachable');
    }),
    { numRuns: runs, endOnFailure: true },
  );
});

test('no generated damage around what guests may not have lets it pass', async () => {
  const guarded = Object.entries(forbidden).flatMap(([path, specs]) => specs.map((spec) => [path, spec] as const));
  await fc.assert(
    fc.asyncProperty(review, fc.constantFrom(...guarded), async (given, [path, spec]) => {
      const { allowed, text } = await ask(path, bodyOf(given, spec, true));
      expect(allowed ?? false, text).toBe(false);
    }),
    { numRuns: runs, endOnFailure: true },
  );
});

test('the same pod and Service without what guests may not have pass: the refusals above are for that alone', async () => {
  const nothing: Generated = { fields: [], before: null, operation: 'CREATE', namespace: 'apps-rome', user: guest };
  const pod = { spec: { pod: { containers: [{ name: 'c', image: 'i' }] } } };
  expect((await ask('/validate/shadowpods', bodyOf(nothing, pod, true))).text).toContain('"allowed":true');
  expect((await ask('/validate/services', bodyOf(nothing, { spec: {} }, true))).text).toContain('"allowed":true');
});
