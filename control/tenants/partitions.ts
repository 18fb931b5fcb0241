/**
 * Every partition that a tenant's data lives in: what its export reads and its deletion empties. A new partition in `keys.ts` belongs in this
 * table; a test compares the two.
 */
export interface Holding {
  /** Under `t/TENANT`. `{cluster}` stands for each cluster that ever joined, `{tenant}` for each tenant there were requests or peerings with. */
  readonly path: string;
  /** What a line of the export is called. Absent: not exported. */
  readonly kind?: string;
  /** Where a partition holds several kinds: by what their ids begin with. */
  readonly kinds?: Readonly<Record<string, string>>;
  /** Why it is not exported. */
  readonly because?: string;
}

/** In the order of deletion: first what gives access, last what the others are found by. */
export const holdings: readonly Holding[] = [
  { path: '/api-keys', kind: 'api-key' },
  { path: '/members', kind: 'member' },
  { path: '/issuers', kind: 'issuer' },
  { path: '/webhooks', kind: 'webhook', kinds: { et: 'event-target' } },
  { path: '/webhook-due', because: 'the order of coming work' },
  { path: '/webhook-failing', because: 'times that the list of webhooks shows' },
  { path: '/webhook-deliveries', kind: 'webhook-delivery' },
  { path: '/join-tokens', because: 'hashes of secrets that live 15 minutes' },
  { path: '/identities', because: 'an index of the members' },
  { path: '/api-key-use', because: 'times that the list of keys shows' },
  { path: '/idempotency', because: 'answers that were given before' },
  { path: '/listeners', because: 'connections, each of which ends at its next ping' },
  { path: '/rate', because: 'counts of the last two minutes' },
  { path: '/spent/{cluster}', because: 'hashes of signed requests, for two minutes' },
  { path: '/cluster/{cluster}', kind: 'cluster-state' },
  { path: '/heard', kind: 'cluster-heard' },
  { path: '/open-requests/{tenant}', because: 'an index of the inbox' },
  {
    path: '/with/{tenant}',
    because: 'what the state machine knows of peerings across tenants, for neither of them to read',
  },
  { path: '/directory', kind: 'directory-entry' },
  { path: '/invitations', kind: 'invitation' },
  { path: '/inbox', kind: 'request-received' },
  { path: '/sent-requests', kind: 'request-sent' },
  { path: '/approval-rules', kind: 'approval-rule' },
  { path: '/looks', because: 'the order of coming work' },
  { path: '/pairs', because: 'an index of the peerings' },
  { path: '/peerings', kind: 'peering' },
  { path: '/labels', because: 'an index of clusters and peerings' },
  { path: '/audit-by', because: 'an index of the audit log' },
  { path: '/audit', kind: 'audit-record' },
  { path: '/clusters', kind: 'cluster' },
  { path: '/counts', because: 'how many clusters and peerings there are' },
  { path: '', kind: 'tenant' },
];

export const perCluster = ({ path }: Holding): boolean => path.includes('{cluster}');

export const perPartner = ({ path }: Holding): boolean => path.includes('{tenant}');

/** `of`: the cluster or the other tenant. */
export const partitionOf = (tenant: string, { path }: Holding, of = ''): string =>
  `t/${tenant}${path.replace(/\{(cluster|tenant)\}/, of)}`;
