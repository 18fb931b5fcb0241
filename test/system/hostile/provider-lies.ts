/** What a provider may say through an API server of its own, in every field of what its consumer reads: generated, and as that server accepts it. */
import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { selfSignedCertificate } from '#agent/pki/serving-request.ts';

/** Addresses that are not the provider's: of metadata services, of Services, nodes and other peers here, of this host. */
const addresses = ['169.254.169.254', '10.96.0.1', '192.0.2.11', '10.73.0.9', '127.0.0.1', '10.71.9.9', 'fd00::1'];
const address = fc.constantFrom(...addresses);
const text = fc.oneof(
  fc.constantFrom('', 'kube-system', 'default', 'liqo', 'True', 'x'.repeat(4_000), '\u202e<script>', '{"a":1}'),
  fc.string({ maxLength: 40 }),
);
const quantity = fc.constantFrom('0', '-1', '1e30', '100m', '9223372036854775807', '5Gi', 'NaN', '');
const label = fc.constantFrom(
  'region',
  'kubernetes.io/arch',
  'kubernetes.io/hostname',
  'node-role.kubernetes.io/control-plane',
  'liqo.io/remote-cluster-id',
  'liqo.io/type',
  'isthmus.dev/peering',
  'node.kubernetes.io/exclude-from-external-load-balancers',
);
const labels = fc.dictionary(label, fc.constantFrom('eu', 'prov', 'other', 'true', ''), { maxKeys: 4 });
const resources = fc.dictionary(fc.constantFrom('cpu', 'memory', 'pods', 'nvidia.com/gpu', 'x'), quantity, {
  maxKeys: 4,
});
const time = '2026-01-01T00:00:00Z';
/** At most `most` of these members. */
const some = (members: Record<string, fc.Arbitrary<unknown>>) => fc.record(members, { requiredKeys: [] });

const condition = fc.record({
  type: fc.constantFrom('Ready', 'PodScheduled', 'DisruptionTarget', 'isthmus.dev/PodIPShown', 'a.b/c'),
  status: fc.constantFrom('True', 'False', 'Unknown'),
  reason: fc.constantFrom('x', 'OutsideRanges', 'OffloadingAborted'),
  message: text,
  lastTransitionTime: fc.constant(time),
});
const container = fc.record({
  name: fc.constantFrom('app', 'other', 'x'.repeat(60)),
  ready: fc.boolean(),
  restartCount: fc.integer({ min: -5, max: 2_000_000_000 }),
  image: text,
  imageID: text,
  state: fc.constantFrom<unknown>({}, { running: {} }, { waiting: { reason: 'CrashLoopBackOff' } }),
});
/** Not that the pod ended: a provider may end the pods that it runs. */
const podStatus = some({
  phase: fc.constantFrom('Pending', 'Running', 'Unknown'),
  podIP: address,
  podIPs: fc.array(fc.record({ ip: address }), { maxLength: 2 }),
  hostIP: address,
  hostIPs: fc.array(fc.record({ ip: address }), { maxLength: 2 }),
  nominatedNodeName: fc.constantFrom('worker', 'kube-system'),
  reason: text,
  message: text,
  conditions: fc.uniqueArray(condition, { maxLength: 3, selector: ({ type }) => type }),
  containerStatuses: fc.uniqueArray(container, { maxLength: 2, selector: ({ name }) => name }),
  qosClass: fc.constantFrom('Guaranteed', 'BestEffort'),
});
const podMetadata = some({
  labels: fc.oneof(labels, fc.dictionary(fc.constantFrom('app', 'tier'), fc.constantFrom('web', 'db'), { maxKeys: 2 })),
  annotations: fc.dictionary(
    fc.constantFrom('isthmus.dev/remote-pod', 'liqo.io/x', 'kubectl.kubernetes.io/last-applied-configuration'),
    text,
    { maxKeys: 3 },
  ),
});

const storage = fc.array(fc.record({ storageClassName: text, default: fc.boolean() }), { maxLength: 3 });
const url = fc.constantFrom(
  'http://prov.example',
  'https://prov.example:6443',
  'https://user:password@prov.example',
  'file:///etc/passwd',
  'javascript:1',
  '',
);
const proxy = fc.constantFrom(
  'http://169.254.169.254',
  'http://kubernetes.default.svc:443',
  'http://10.9.0.1:8118',
  '',
);
const sliceStatus = some({
  resources,
  nodeLabels: labels,
  nodeSelector: labels,
  storageClasses: storage,
  ingressClasses: fc.array(fc.record({ ingressClassName: text, default: fc.boolean() }), { maxLength: 3 }),
  loadBalancerClasses: fc.array(fc.record({ loadBalancerClassName: text, default: fc.boolean() }), { maxLength: 3 }),
  nodeConditions: fc.array(
    fc.record({
      type: fc.constantFrom('Ready', 'MemoryPressure', 'Cordoned'),
      status: fc.constantFrom('True', 'False'),
      reason: text,
      message: text,
    }),
    { maxLength: 3 },
  ),
  authParams: some({
    ca: fc.constantFrom('', 'eA==', Buffer.from('CA').toString('base64')),
    apiServer: url,
    proxyURL: proxy,
    signedCRT: fc.constantFrom('', Buffer.from('no certificate').toString('base64')),
  }),
});

const { privateKey } = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
/** For a key and a name of its own; of several ends, since the newer one is taken. */
export const strangeCertificate = (year: number): string => {
  const validity = { notBeforeMs: Date.UTC(2026, 0, 1), notAfterMs: Date.UTC(year, 0, 1) };
  const pem = selfSignedCertificate(
    { nodeName: 'kube-system', addresses: [] },
    privateKey,
    validity,
    Buffer.alloc(19, year),
  );
  return Buffer.from(pem).toString('base64');
};
const renewStatus = some({
  authParams: some({
    ca: fc.constantFrom('', 'eA==', Buffer.from('CA').toString('base64')),
    apiServer: url,
    proxyURL: proxy,
    signedCRT: fc.oneof(fc.constantFrom('', 'eA=='), fc.integer({ min: 2027, max: 2090 }).map(strangeCertificate)),
    sealedToken: fc.constantFrom('a.b.c.d.e', ''),
    tokenExpiration: fc.constantFrom('2099-01-01T00:00:00Z', 'tomorrow'),
  }),
  recoveryIP: fc.constantFrom('169.254.169.254', '10.96.0.1', '127.0.0.1', '10.70.0.9', ''),
});

/** Not of the one that is offloaded: a provider may end what it runs. */
const namespace = fc.constantFrom('default', 'kube-system', 'liqo', 'liqo-tenant-prov', 'none', 'constructor');
const mapStatus = fc.record({
  currentMapping: fc.dictionary(
    namespace,
    fc.record({
      remoteNamespace: fc.constantFrom('demo-cons', 'default-cons', 'kube-system', 'evil', '..', ''),
      phase: fc.constantFrom('Accepted', 'CreationLoopBackOff', 'Terminating'),
    }),
    { minKeys: 1, maxKeys: 5 },
  ),
});

const event = fc.record({
  involvedObject: fc.record({
    kind: fc.constantFrom('Pod', 'Service', 'Node', 'Namespace', 'Secret', 'Pod'),
    name: fc.constantFrom('web', 'treasure', 'kube-system', 'vn1'),
    namespace: fc.constantFrom('demo-cons', 'demo-cons', 'kube-system', ''),
    uid: fc.constantFrom('', 'x'),
  }),
  reason: text,
  message: text,
  type: fc.constantFrom('Normal', 'Warning', 'x'),
  count: fc.integer({ min: -1, max: 1_000_000 }),
});

/** A copy of what the consumer reflects, changed at the provider. */
const copy = fc.record({
  metadata: some({ labels, annotations: fc.dictionary(fc.constantFrom('a', 'liqo.io/x'), text, { maxKeys: 2 }) }),
  data: fc.option(fc.dictionary(fc.constantFrom('key', 'other'), fc.constantFrom('eA==', ''), { maxKeys: 2 }), {
    nil: {},
  }),
});

const copyOfService = some({
  metadata: some({ labels, annotations: fc.dictionary(fc.constantFrom('a', 'liqo.io/x'), text, { maxKeys: 2 }) }),
  spec: some({
    selector: fc.dictionary(fc.constantFrom('app', 'x'), fc.constantFrom('web', 'db'), { maxKeys: 2 }),
    externalIPs: fc.array(fc.constantFrom('169.254.169.254', '10.73.0.9', '192.0.2.11'), { maxLength: 2 }),
    ports: fc.constantFrom([{ port: 443, protocol: 'TCP' }], [{ port: 80, targetPort: 6443, protocol: 'TCP' }]),
    type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer'),
  }),
});
/** Endpoints of the Service there, made by hand: nothing reads them here. */
const endpointSlice = fc.record({
  addressType: fc.constant('IPv4'),
  endpoints: fc.array(fc.record({ addresses: fc.tuple(fc.constantFrom('10.73.0.9', '192.0.2.11', '10.9.9.9')) }), {
    maxLength: 2,
  }),
  ports: fc.constant([{ port: 6443 }]),
});

export const anyLie = fc.oneof(
  fc.record({ about: fc.constant('pod status' as const), body: podStatus }),
  fc.record({ about: fc.constant('pod metadata' as const), body: podMetadata }),
  fc.record({ about: fc.constant('slice' as const), body: sliceStatus }),
  fc.record({ about: fc.constant('map' as const), body: mapStatus }),
  fc.record({ about: fc.constant('renewal' as const), body: renewStatus }),
  fc.record({ about: fc.constant('event' as const), body: event }),
  fc.record({ about: fc.constant('copy of a Secret' as const), body: copy }),
  fc.record({ about: fc.constant('copy of a Service' as const), body: copyOfService }),
  fc.record({ about: fc.constant('EndpointSlice' as const), body: endpointSlice }),
);
export type Lie = typeof anyLie extends fc.Arbitrary<infer T> ? T : never;
