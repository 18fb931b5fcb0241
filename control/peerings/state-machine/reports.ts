/** Reads what the agents reported. What does not have the agreed form counts as not there. */
import * as z from 'zod';
import { name as wellKnown } from '#shared/domain/liqo-keys.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import type { Issued, Signed } from '../../model/peering-records.ts';

const text = z.string().min(1);
const SignedData = z.object({ signedNonce: text, csr: text, publicKey: text, succession: text.optional() });
const AuthParams = z.looseObject({ signedCRT: text, apiServer: text });
const TenantData = z.object({ authParams: AuthParams, tenantNamespace: text });
const IdentityData = z.object({ kubeconfigReady: z.literal(true) });
const Condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
});
const SliceData = z.object({
  conditions: z.array(Condition).optional(),
  resources: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
});
const NodeData = z.object({ ready: z.boolean(), reason: z.string().optional(), message: z.string().optional() });

/** `undefined` everywhere: not reported yet. */
export interface ConsumerReport {
  readonly signed?: Signed;
  readonly kubeconfigReady: boolean;
  readonly authentication?: Decision;
  readonly grant?: Decision;
  readonly granted?: Readonly<Record<string, string>>;
  readonly node?: { readonly ready: boolean; readonly reason: string; readonly message: string };
}

export interface Decision {
  readonly accepted: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface ProviderReport {
  readonly issued?: Issued;
}

const dataOf = (set: ObservedSet | undefined, kind: string, name?: string): unknown =>
  set?.objects.find((o) => o.kind === kind && !o.deleting && (name === undefined || o.name === name))?.data;

export function readConsumer(
  set: ObservedSet | undefined,
  names: { readonly slice: string; readonly identity: string },
): ConsumerReport {
  const signed = SignedData.safeParse(dataOf(set, 'Secret', wellKnown.signedNonceSecret));
  const slice = SliceData.safeParse(dataOf(set, 'ResourceSlice', names.slice));
  const node = NodeData.safeParse(dataOf(set, 'Node', names.slice));
  const conditions = slice.success ? (slice.data.conditions ?? []) : [];
  const authentication = decisionOf(conditions, 'Authentication');
  const grant = decisionOf(conditions, 'Resources');
  return {
    kubeconfigReady: IdentityData.safeParse(dataOf(set, 'Identity', names.identity)).success,
    ...(signed.success ? { signed: signed.data } : {}),
    ...(authentication ? { authentication } : {}),
    ...(grant ? { grant } : {}),
    ...(slice.success && slice.data.resources && grant?.accepted ? { granted: asTexts(slice.data.resources) } : {}),
    ...(node.success
      ? { node: { ready: node.data.ready, reason: node.data.reason ?? '', message: node.data.message ?? '' } }
      : {}),
  };
}

export function readProvider(set: ObservedSet | undefined, tenant: string): ProviderReport {
  const parsed = TenantData.safeParse(dataOf(set, 'Tenant', tenant));
  if (!parsed.success) return {};
  const { authParams, tenantNamespace } = parsed.data;
  const kept = ['ca', 'signedCRT', 'apiServer', 'proxyURL'].flatMap((field) => {
    const value = authParams[field];
    return typeof value === 'string' && value !== '' ? [[field, value] as const] : [];
  });
  return { issued: { authParams: Object.fromEntries(kept), tenantNamespace } };
}

function decisionOf(conditions: readonly z.infer<typeof Condition>[], type: string): Decision | undefined {
  const found = conditions.find((condition) => condition.type === type);
  return found && { accepted: found.status === 'Accepted', reason: found.reason ?? '', message: found.message ?? '' };
}

const asTexts = (resources: Readonly<Record<string, string | number>>): Record<string, string> =>
  Object.fromEntries(Object.entries(resources).map(([name, value]) => [name, String(value)]));

const tenantPrefix = wellKnown.tenantNamespace('');
const gatewayPrefix = networkName.gateway('');

export const linkKinds = ['Configuration', 'GatewayServer', 'GatewayClient', 'PublicKey', 'Connection'] as const;
const isOfLink = ({ kind, name }: ObservedSet['objects'][number]): boolean =>
  linkKinds.some((one) => one === kind) || (kind === 'Secret' && name.startsWith(gatewayPrefix));

/** `Kind/namespace/name` of what is still there. Two opposite peerings of a pair share the tenant namespace and the link. */
export const remainingOf = (set: ObservedSet | undefined, shared: boolean): readonly string[] =>
  (set?.objects ?? [])
    .filter(
      (object) =>
        !(shared && ((object.kind === 'Namespace' && object.name.startsWith(tenantPrefix)) || isOfLink(object))),
    )
    .map((object) =>
      [object.kind, ...(object.namespace === undefined ? [] : [object.namespace]), object.name].join('/'),
    );
