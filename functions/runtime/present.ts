/** From the control plane's views to the resources of the REST API: names and times as clients see them. */
import type { AuditRecord as AuditView } from '#control/audit/audit.ts';
import type { IssuedJoinToken } from '#control/clusters/clusters.ts';
import type { CloudEvent } from '#control/events/cloud-event.ts';
import type { ApiKeyView } from '#control/model/api-key.ts';
import type { ClusterView } from '#control/model/cluster.ts';
import type { LinkEndView, NetworkView, PeeringView } from '#control/model/peering.ts';
import type { Point } from '#control/peerings/samples/points.ts';
import type { SeriesView } from '#control/peerings/samples/samples.ts';
import type { IssuedKey } from '#control/tenants/tenants.ts';
import type { LinkEnd, PeeringNetwork, PeeringSeries, SamplePoint } from '#shared/schema/api/network.ts';
import type {
  ApiKey,
  AuditRecord,
  Cluster,
  FeedEvent,
  IssuedApiKey,
  JoinTokenAnswer,
  Peering,
} from '#shared/schema/api/resources.ts';

const time = (ms: number): string => new Date(ms).toISOString();

export const clusterResource = (view: ClusterView): Cluster => ({
  name: view.id,
  state: view.state,
  online: view.online,
  lastSeenAt: time(view.lastSeenAt),
  joinedAt: time(view.joinedAt),
  ...(view.leftAt !== undefined && { leftAt: time(view.leftAt) }),
  labels: { ...view.labels },
  agentVersion: view.facts.agentVersion,
  kubernetesVersion: view.facts.kubernetesVersion,
  apiServerUrl: view.facts.apiServerUrl,
  podCidrs: view.facts.podCidrs,
  serviceCidrs: view.facts.serviceCidrs,
  nodes: view.facts.nodes,
  allocatable: view.facts.allocatable,
  policies: view.facts.policies,
  ...(view.facts.network && { network: view.facts.network }),
  publicAddresses: [...view.publicAddresses],
  keyThumbprint: view.keyThumbprint,
  version: view.version,
});

export const joinTokenResource = (issued: IssuedJoinToken): JoinTokenAnswer => ({
  token: issued.token,
  cluster: issued.clusterId,
  expiresAt: time(issued.expiresAt),
});

const linkEndResource = ({ value, reportedAt, ...end }: LinkEndView): LinkEnd => ({
  status: value,
  ...end,
  ...(reportedAt !== undefined && { reportedAt: time(reportedAt) }),
});

const networkResource = ({ link, ...terms }: NetworkView): PeeringNetwork => ({
  ...terms,
  ...(link && {
    link: { ...link, consumer: linkEndResource(link.consumer), provider: linkEndResource(link.provider) },
  }),
});

export const peeringResource = (view: PeeringView): Peering => ({
  id: view.id,
  consumer: view.consumer,
  provider: view.provider,
  resources: { ...view.resources },
  class: view.class,
  labels: { ...view.labels },
  phase: view.phase,
  conditions: view.conditions.map((condition) => ({ ...condition, since: time(condition.since) })),
  waitingFor: view.waitingFor,
  ...(view.granted && { granted: { ...view.granted } }),
  ...(view.network && { network: networkResource(view.network) }),
  nodeName: view.nodeName,
  createdAt: time(view.createdAt),
  phaseSince: Object.fromEntries(Object.entries(view.phaseSince).map(([phase, since]) => [phase, time(since)])),
  ...(view.unpeerRequestedAt !== undefined && { unpeerRequestedAt: time(view.unpeerRequestedAt) }),
  leftBehind: [...view.leftBehind],
  ...(view.warnings ? { warnings: view.warnings.map((one) => ({ ...one })) } : {}),
  ...(view.across && {
    across: {
      ...view.across,
      limits: { ...view.across.limits },
      classes: [...view.across.classes],
      lapsesAt: time(view.across.lapsesAt),
    },
  }),
  owner: { ...view.owner },
  version: view.version,
});

const pointResource = ({ at, rttMicros, cpuGranted, cpuUsed, ...rest }: Point): SamplePoint => ({
  at: time(at),
  ...(rttMicros !== undefined && { rttMs: rttMicros / 1_000 }),
  ...(cpuGranted !== undefined && { cpuGranted: cpuGranted / 1_000 }),
  ...(cpuUsed !== undefined && { cpuUsed: cpuUsed / 1_000 }),
  ...rest,
});

export const seriesResource = ({ from, to, stepMs, consumer, provider }: SeriesView): PeeringSeries => ({
  from: time(from),
  to: time(to),
  stepSeconds: stepMs / 1_000,
  ...(consumer && { consumer: consumer.map(pointResource) }),
  ...(provider && { provider: provider.map(pointResource) }),
});

export const eventResource = (view: CloudEvent): FeedEvent => ({ ...view, data: { ...view.data } });

export const auditResource = (view: AuditView): AuditRecord => ({ ...view, at: time(view.at) });

export const apiKeyResource = (view: ApiKeyView): ApiKey => ({
  id: view.id,
  name: view.name,
  prefix: view.prefix,
  role: view.role,
  ...(view.scopes && { scopes: [...view.scopes] }),
  createdAt: time(view.createdAt),
  ...(view.expiresAt !== undefined && { expiresAt: time(view.expiresAt) }),
  ...(view.revokedAt !== undefined && { revokedAt: time(view.revokedAt) }),
  ...(view.replacedBy !== undefined && { replacedBy: view.replacedBy }),
  ...(view.lastUsedAt !== undefined && { lastUsedAt: time(view.lastUsedAt) }),
});

export const issuedKeyResource = (issued: IssuedKey): IssuedApiKey => ({
  key: apiKeyResource(issued.key),
  secret: issued.secret,
});

/** A page of views as a page of resources. */
export const pageOf = <V, R>(
  page: { readonly items: readonly V[]; readonly cursor?: string },
  present: (view: V) => R,
): { items: R[]; cursor?: string } => ({
  items: page.items.map(present),
  ...(page.cursor !== undefined && { cursor: page.cursor }),
});
