/** The summary of one peer, computed from what exists for it. Pure. */
import type { Node } from '#shared/domain/kube-object.ts';
import type {
  ForeignCluster,
  ForeignClusterCondition,
  ForeignClusterModule,
  ForeignClusterRole,
  ForeignClusterStatus,
} from '#shared/schema/liqo/foreign-cluster.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { expiryMessage } from './credentials.ts';
import { hasNetwork, type NetworkFacts, networkDrafts } from './network.ts';

export interface ApiServerHealth {
  readonly ok: boolean;
  /** Why not, in words. */
  readonly message: string;
}

export interface PeerFacts {
  readonly tenant: Tenant | undefined;
  /** Of type ControlPlane. */
  readonly identity: Identity | undefined;
  /** Server in a control-plane kubeconfig that no Identity made. */
  readonly declaredServer: string | undefined;
  /** Proxy in that kubeconfig. */
  readonly declaredProxy?: string | undefined;
  readonly virtualNodes: readonly VirtualNode[];
  readonly nodes: readonly Node[];
  readonly network: NetworkFacts;
  /** Undefined: not checked yet, or nothing to check. */
  readonly health: ApiServerHealth | undefined;
  /** Of those by which the provider is asked; undefined: there is none. */
  readonly credentialsEndMs: number | undefined;
  readonly nowMs: number;
}

type Draft = Pick<ForeignClusterCondition, 'type' | 'status' | 'reason' | 'message'>;

function settle(
  before: readonly ForeignClusterCondition[],
  drafts: readonly Draft[],
  nowMs: number,
): ForeignClusterCondition[] {
  return drafts.map((draft) => {
    const old = before.find(({ type }) => type === draft.type);
    const lastTransitionTime =
      old?.status === draft.status && old.lastTransitionTime !== undefined
        ? old.lastTransitionTime
        : new Date(Math.floor(nowMs / 1000) * 1000).toISOString().replace('.000Z', 'Z');
    return { ...draft, lastTransitionTime };
  });
}

const tenantDraft = ({ spec, status }: Tenant): Draft => {
  const needsCredentials = (spec.authzPolicy ?? 'KeysExchange') === 'KeysExchange';
  const failed = status?.conditions?.find((one) => one.type === 'Handshake' && one.status === 'False');
  const isReady = status?.tenantNamespace !== undefined && (!needsCredentials || status.authParams !== undefined);
  return isReady
    ? {
        type: 'AuthTenantStatus',
        status: 'Ready',
        reason: 'TenantReady',
        message: 'the consumer has its credentials and rights here',
      }
    : {
        type: 'AuthTenantStatus',
        status: 'NotReady',
        reason: failed?.reason ?? 'TenantNotReady',
        message: failed?.message ?? 'the Tenant has no credentials yet; its events say why',
      };
};

const identityDraft = ({ status }: Identity): Draft =>
  status?.kubeconfigSecretRef?.name === undefined
    ? {
        type: 'AuthIdentityControlPlaneStatus',
        status: 'NotReady',
        reason: 'IdentityNotReady',
        message: 'the Identity has no kubeconfig yet; its events say why',
      }
    : {
        type: 'AuthIdentityControlPlaneStatus',
        status: 'Ready',
        reason: 'IdentityReady',
        message: 'the credentials for the provider are in place',
      };

/** What is not Ready first, since `kubectl get` prints the first. */
const worstFirst = (drafts: readonly Draft[]): Draft[] => [
  ...drafts.filter(({ status }) => status !== 'Ready'),
  ...drafts.filter(({ status }) => status === 'Ready'),
];

/** Expired credentials cannot renew themselves: a renewal request needs working credentials. */
function refusalDraft(peer: string, facts: PeerFacts, { message }: ApiServerHealth): Draft {
  const { credentialsEndMs: endMs, identity, nowMs } = facts;
  const refused = { type: 'APIServerStatus', status: 'Error' } as const;
  if (endMs === undefined || endMs > nowMs) return { ...refused, reason: 'APIServerNotReady', message };
  const why = expiryMessage({ peer, endMs, hasIdentity: identity !== undefined });
  return { ...refused, reason: 'CertificateExpired', message: why };
}

type CountedType = 'OffloadingVirtualNodeStatus' | 'OffloadingNodeStatus';

function counted(type: CountedType, what: string, ready: number, total: number): Draft {
  const message = `${ready} of ${total} ready`;
  if (ready >= total) return { type, status: 'Ready', reason: `${what}Ready`, message };
  return ready === 0
    ? { type, status: 'NotReady', reason: `${what}NotReady`, message }
    : { type, status: 'SomeNotReady', reason: `${what}SomeNotReady`, message };
}

const isServing = (node: VirtualNode): boolean =>
  node.status?.conditions?.some(({ type, status }) => type === 'VirtualKubelet' && status === 'Running') ?? false;
const isReady = (node: Node): boolean =>
  node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;

const module = (
  enabled: boolean,
  before: ForeignClusterModule | undefined,
  drafts: readonly Draft[],
  nowMs: number,
): ForeignClusterModule => ({
  enabled,
  conditions: settle(before?.conditions ?? [], drafts, nowMs),
});

const roleOf = (isConsumer: boolean, isProvider: boolean): ForeignClusterRole => {
  if (isConsumer) return isProvider ? 'ConsumerAndProvider' : 'Consumer';
  return isProvider ? 'Provider' : 'Unknown';
};

/** Where the peer's API server is, as far as anything here says. */
const apiServerOf = ({
  identity,
  declaredServer,
}: Pick<PeerFacts, 'identity' | 'declaredServer'>): string | undefined =>
  identity?.spec.authParams.apiServer || declaredServer;

/** How the API server of a provider is asked, in the words of Liqo's tutorials; empty for a peer that gives nothing. */
export const peeringTypeOf = ({
  identity,
  declaredServer,
  declaredProxy,
}: Pick<PeerFacts, 'identity' | 'declaredServer' | 'declaredProxy'>): string => {
  if (identity === undefined && declaredServer === undefined) return '';
  const proxy = identity === undefined ? declaredProxy : identity.spec.authParams.proxyURL;
  return proxy ? 'InBand' : 'OutOfBand';
};

/** Worth a summary: something here is about this peer. */
export const isAnything = (facts: PeerFacts, others: number): boolean =>
  facts.tenant !== undefined ||
  facts.identity !== undefined ||
  facts.declaredServer !== undefined ||
  hasNetwork(facts.network) ||
  facts.virtualNodes.length + facts.nodes.length + others > 0;

export function summarise(foreign: ForeignCluster, facts: PeerFacts): ForeignClusterStatus {
  const { tenant, identity, virtualNodes, nodes, health, nowMs } = facts;
  const before = foreign.status;
  // Some are without a Node for good reasons: spec.createNode, or a drain by the provider.
  const expected = virtualNodes.filter(
    ({ spec, status }) =>
      spec.createNode !== false &&
      !status?.conditions?.some((condition) => condition.type === 'Node' && condition.status === 'None'),
  );
  const apiServerUrl = apiServerOf(facts);
  const isProvider = identity !== undefined || facts.declaredServer !== undefined || virtualNodes.length > 0;
  const local = tenant?.status?.tenantNamespace ?? identity?.metadata.namespace;
  const remote = identity?.spec.namespace;
  const authentication = [...(tenant ? [tenantDraft(tenant)] : []), ...(identity ? [identityDraft(identity)] : [])];
  const offloading =
    virtualNodes.length === 0
      ? []
      : [
          counted(
            'OffloadingVirtualNodeStatus',
            'VirtualNodes',
            virtualNodes.filter(isServing).length,
            virtualNodes.length,
          ),
          counted('OffloadingNodeStatus', 'Nodes', nodes.filter(isReady).length, expected.length),
        ];
  const checks: Draft[] =
    health === undefined || apiServerUrl === undefined
      ? []
      : [
          health.ok
            ? { type: 'APIServerStatus', status: 'Established', reason: 'APIServerReady', message: health.message }
            : refusalDraft(foreign.spec.clusterID, facts, health),
        ];
  const hasAuthentication = tenant !== undefined || identity !== undefined || facts.declaredServer !== undefined;
  return {
    ...(foreign.metadata.generation === undefined ? {} : { observedGeneration: foreign.metadata.generation }),
    role: roleOf(tenant !== undefined, isProvider),
    modules: {
      networking: module(hasNetwork(facts.network), before?.modules.networking, networkDrafts(facts.network), nowMs),
      authentication: module(hasAuthentication, before?.modules.authentication, worstFirst(authentication), nowMs),
      offloading: module(virtualNodes.length > 0, before?.modules.offloading, worstFirst(offloading), nowMs),
    },
    ...(apiServerUrl === undefined ? {} : { apiServerUrl }),
    ...(identity?.spec.authParams.proxyURL ? { foreignProxyUrl: identity.spec.authParams.proxyURL } : {}),
    ...(local === undefined && remote === undefined
      ? {}
      : {
          tenantNamespace: { ...(local === undefined ? {} : { local }), ...(remote === undefined ? {} : { remote }) },
        }),
    conditions: settle(before?.conditions ?? [], checks, nowMs),
  };
}
