/** Reads what the agents reported, field by field. What does not have the agreed form counts as not there. */
import { name as wellKnown } from '#shared/domain/liqo-keys.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import type { ObservedCondition, ObservedData } from '#shared/schema/protocol/observed-data.ts';
import type { Issued, Signed } from '../../model/peering-records.ts';
import { dataOf } from '../core/observed.ts';

/** `undefined` everywhere: not reported yet. */
export interface ConsumerReport {
  readonly signed?: Signed;
  readonly kubeconfigReady: boolean;
  readonly authentication?: Decision;
  readonly grant?: Decision;
  readonly granted?: Readonly<Record<string, string>>;
  readonly node?: { readonly ready: boolean; readonly reason: string; readonly message: string };
}

interface Decision {
  readonly accepted: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface ProviderReport {
  readonly issued?: Issued;
}

export function readConsumer(
  set: ObservedSet | undefined,
  names: { readonly slice: string; readonly identity: string },
): ConsumerReport {
  const signed = signedOf(dataOf(set, 'Secret', wellKnown.signedNonceSecret));
  const slice = dataOf(set, 'ResourceSlice', names.slice);
  const node = dataOf(set, 'Node', names.slice);
  const authentication = decisionOf(slice?.conditions, 'Authentication');
  const grant = decisionOf(slice?.conditions, 'Resources');
  return {
    kubeconfigReady: dataOf(set, 'Identity', names.identity)?.kubeconfigReady === true,
    ...(signed ? { signed } : {}),
    ...(authentication ? { authentication } : {}),
    ...(grant ? { grant } : {}),
    ...(slice?.resources && grant?.accepted ? { granted: asTexts(slice.resources) } : {}),
    ...(node?.ready === undefined
      ? {}
      : { node: { ready: node.ready, reason: node.reason ?? '', message: node.message ?? '' } }),
  };
}

function signedOf(secret: ObservedData<'Secret'> | undefined): Signed | undefined {
  const { signedNonce, csr, publicKey, succession } = secret ?? {};
  if (!signedNonce || !csr || !publicKey) return undefined;
  return { signedNonce, csr, publicKey, ...(succession ? { succession } : {}) };
}

export function readProvider(set: ObservedSet | undefined, tenant: string): ProviderReport {
  const { authParams, tenantNamespace } = dataOf(set, 'Tenant', tenant) ?? {};
  const hasCredentials = Boolean(authParams?.signedCRT || authParams?.sealedToken);
  if (!hasCredentials || !authParams?.apiServer || !tenantNamespace) return {};
  const { ca, signedCRT, apiServer, proxyURL, sealedToken, tokenExpiration } = authParams;
  const kept = Object.entries({ ca, signedCRT, apiServer, proxyURL, sealedToken, tokenExpiration }).flatMap(
    ([field, value]) => (value === undefined || value === '' ? [] : [[field, value] as const]),
  );
  return { issued: { authParams: Object.fromEntries(kept), tenantNamespace } };
}

function decisionOf(conditions: readonly ObservedCondition[] = [], type: string): Decision | undefined {
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

/** `Kind/name` or `Kind/namespace/name`: agents report an object without a namespace as `Kind//name`. */
export const shownObject = ({ object }: { readonly object: string }): string => object.replace('//', '/');
