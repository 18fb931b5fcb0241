/**
 * What an agent reports of each kind of object, and how it is read: field by field, so that one that does not fit costs that field and nothing
 * else. The agent writes by these schemas and the broker reads by them.
 */
import * as z from 'zod';

/** IPv4, as `10.0.0.0/16`. */
const Range = z.string().regex(/^[0-9.]{7,15}\/[0-9]{1,2}$/, 'must be an IPv4 range');
const Endpoint = z
  .string()
  .max(300)
  .regex(/^[-A-Za-z0-9.]{1,253}:[0-9]{1,5}$/, 'must be ADDRESS:PORT');

/** As Kubernetes has them; what else a condition says travels along. */
export const ObservedCondition = z.looseObject({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
  observedGeneration: z.int().optional(),
});
export type ObservedCondition = z.infer<typeof ObservedCondition>;
const conditions = z.array(ObservedCondition);

/** Of a round trip that was not measured: Liqo's word for it, and ours. */
export const unknownLatency = 'N/A';
const Latency = z
  .string()
  .regex(/^(N\/A|[0-9.]{1,12}(ms|μs|µs|s))$/, `must be a number with ms, μs or s, or ${unknownLatency}`);

/** What a link's end is called; a Connection of another value is read as Unknown. */
export const linkValues = ['Connected', 'Connecting', 'Error'] as const;

/** base64 of a key, a signature or a PKCS#10 request; the longest, of RSA with 8,192 bits, take 6 KB. */
const secretText = z.string().max(8_192);

const byKind = {
  Namespace: z.object({}),
  /** `publicKey` of a gateway's Secret is `WireGuardKey`; of the one that answers a nonce it is a PEM block. */
  Secret: z.object({
    signedNonce: secretText,
    csr: secretText,
    publicKey: secretText,
    succession: secretText,
  }),
  Tenant: z.object({
    tenantNamespace: z.string(),
    conditions,
    authParams: z.looseObject({
      ca: z.string().optional(),
      signedCRT: z.string().optional(),
      apiServer: z.string().optional(),
      proxyURL: z.string().optional(),
      sealedToken: z.string().max(16_384).optional(),
      tokenExpiration: z.string().optional(),
    }),
    tenantCondition: z.string(),
  }),
  Identity: z.object({ kubeconfigReady: z.boolean(), signedCRT: z.string() }),
  ResourceSlice: z.object({
    conditions,
    resources: z.record(z.string(), z.union([z.string(), z.number()])),
    spec: z.looseObject({}),
  }),
  VirtualNode: z.object({ conditions }),
  NamespaceMap: z.object({}),
  Configuration: z.object({
    remote: z.looseObject({
      cidr: z.looseObject({ pod: z.array(Range).optional(), external: z.array(Range).optional() }),
    }),
    conditions,
  }),
  GatewayServer: z.object({
    endpoint: z.looseObject({
      addresses: z.array(z.string()).optional(),
      port: z.int().optional(),
      ports: z.array(z.int()).optional(),
    }),
    conditions,
    candidates: z.array(Endpoint),
  }),
  GatewayClient: z.object({ conditions, candidates: z.array(Endpoint) }),
  PublicKey: z.object({}),
  Connection: z.object({
    value: z.enum(linkValues),
    latency: Latency,
    mtu: z.int().min(0).max(65_535),
    peerEndpoint: Endpoint,
    lastHandshakeTime: z.iso.datetime({ offset: true }),
    packetLoss: z.int().min(0).max(100),
    receivedBytes: z.int().min(0),
    sentBytes: z.int().min(0),
  }),
  Node: z.object({ ready: z.boolean(), reason: z.string(), message: z.string() }),
} as const;

export const WireGuardKey = z.string().regex(/^[A-Za-z0-9+/]{43}=$/, 'must be 32 bytes in base64');
export const isEndpoint = (text: string): boolean => Endpoint.safeParse(text).success;

export type ObservedKind = keyof typeof byKind;
/** Every field may be missing: not there yet, or not readable. */
export type ObservedData<K extends ObservedKind> = Partial<z.output<(typeof byKind)[K]>>;

export const isObservedKind = (kind: string): kind is ObservedKind => Object.hasOwn(byKind, kind);

/** A field that was left out. */
export interface Unfit {
  /** `latency`, `candidates[2]` */
  readonly field: string;
  /** JSON of what was there, cut. */
  readonly value: string;
  readonly accepted: string;
}

export interface ReadData<K extends ObservedKind> {
  readonly data: ObservedData<K>;
  readonly unfit: readonly Unfit[];
}

const longestValue = 60;

/** Of a list only those entries are left out that do not fit. Fields that the schema does not know are passed over. */
export function readData<K extends ObservedKind>(kind: K, from: Readonly<Record<string, unknown>>): ReadData<K> {
  const shape: Readonly<Record<string, z.ZodType>> = byKind[kind].shape;
  const data: Record<string, unknown> = {};
  const unfit: Unfit[] = [];
  const read = (field: string, schema: z.ZodType, value: unknown): readonly unknown[] => {
    const parsed = schema.safeParse(value);
    if (parsed.success) return [parsed.data];
    const accepted = parsed.error.issues.map(({ path, message }) => [...path, message].join(': ')).join('; ');
    unfit.push({ field, value: (JSON.stringify(value) ?? 'undefined').slice(0, longestValue), accepted });
    return [];
  };
  for (const [field, schema] of Object.entries(shape)) {
    const value = from[field];
    // Kubernetes leaves out what is not set, or says null.
    if (value === undefined || value === null) continue;
    if (schema instanceof z.ZodArray && Array.isArray(value)) {
      const entry = schema.element as z.ZodType;
      data[field] = value.flatMap((one, index) => read(`${field}[${index}]`, entry, one));
      continue;
    }
    const [found] = read(field, schema, value);
    if (found !== undefined) data[field] = found;
  }
  return { data: data as ObservedData<K>, unfit };
}

/** One line: object, field, value, what would be accepted. */
export const unfitText = (
  { kind, name }: { readonly kind: string; readonly name: string },
  { field, value, accepted }: Unfit,
): string => `${kind} ${name}: ${field} is ${value}: ${accepted}`;
