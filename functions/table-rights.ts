/**
 * Which kinds of partitions of the table each function may read and write: the leading keys in the policy of its role. A kind is a pattern of
 * partition keys, as `control/store/keys.ts` makes them, with `*` for the tenant and for what comes after the kind's name.
 */

/** The partition of the tenant itself; as a pattern it would mean all below it, too. */
export const tenantItself = 't/*';

export interface TableRights {
  readonly read: readonly string[];
  readonly write: readonly string[];
}

/** What belongs together: a use case that needs one of these kinds needs the others on some of its ways. */
const areas = {
  tenant: ['t/*'],
  signIn: [
    'system/operators',
    't/*',
    't/*/api-key-use',
    't/*/api-keys',
    't/*/identities',
    't/*/issuers',
    't/*/members',
    't/*/rate',
  ],
  /** What a request leaves by being made. */
  counted: ['t/*/api-key-use', 't/*/rate'],
  agent: ['t/*', 't/*/clusters', 't/*/heard', 't/*/rate'],
  heard: ['t/*/heard', 't/*/rate', 't/*/spent/*'],
  changes: ['t/*/audit', 't/*/audit-by', '§outbox', '§outbox/*'],
  idempotency: ['t/*/idempotency'],
  approvalRules: ['t/*/approval-rules'],
  audit: ['t/*/audit', 't/*/audit-by'],
  clusters: ['t/*/cluster/*', 't/*/clusters', 't/*/counts', 't/*/heard', 't/*/labels'],
  connections: ['system/connections/*', 't/*/connections/*'],
  coordination: [
    'system/due-looks/*',
    't/*',
    't/*/cluster/*',
    't/*/clusters',
    't/*/counts',
    't/*/heard',
    't/*/invitations',
    't/*/labels',
    't/*/looks',
    't/*/pairs',
    't/*/peerings',
    't/*/with/*',
  ],
  counts: ['t/*/counts'],
  feed: ['§outbox/*'],
  inbox: ['t/*/approval-rules', 't/*/inbox', 't/*/open-requests/*', 't/*/sent-requests'],
  invitations: ['t/*/invitations'],
  issuers: ['t/*/issuers'],
  /** What the key of an open socket may do now. */
  heldKeys: ['t/*', 't/*/api-keys'],
  listeners: ['system/connections/*', 't/*/listeners'],
  joinTokens: ['t/*/join-tokens'],
  keys: ['t/*/api-key-use', 't/*/api-keys'],
  members: ['t/*/identities', 't/*/members'],
  peerings: ['t/*/cluster/*', 't/*/labels', 't/*/pairs', 't/*/peerings'],
  publishing: ['system/directory/*', 't/*/directory'],
  receivers: ['t/*/webhook-deliveries', 't/*/webhook-due', 't/*/webhook-failing', 't/*/webhooks'],
  /** Of all tenants: what a tenant's own function writes there it does not read there. */
  dueDeliveries: ['system/due-deliveries/*'],
  tenants: ['system/deleting', 'system/tenants', 'system/tombstones', 't/*'],
  /** For a copy of a tenant, and for its end. */
  allOfATenant: ['t/*', 't/*/*'],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type Area = keyof typeof areas;

/** By name of the function; all that match count. Without `writes`, what it reads is what it changes, unless it is a GET. */
const rules: readonly {
  readonly of: RegExp;
  readonly reads: readonly Area[];
  readonly writes?: readonly Area[];
}[] = [
  { of: /^api-approval-rules-/, reads: ['approvalRules'] },
  { of: /^api-audit-/, reads: ['audit'] },
  { of: /^api-clusters-/, reads: ['clusters'] },
  { of: /^api-clusters-delete$/, reads: ['coordination', 'publishing'] },
  { of: /^api-directory-/, reads: ['publishing', 'clusters'] },
  { of: /^api-(event-targets|webhooks)-/, reads: ['receivers'] },
  { of: /^api-(event-targets|webhooks)-(.*-)?(change|replay|rotate|test)$/, reads: [], writes: ['dueDeliveries'] },
  { of: /^api-events-/, reads: ['feed'], writes: ['feed'] },
  { of: /^api-invitations-/, reads: ['invitations'] },
  { of: /^api-invitations-(create|redeem|revoke)$/, reads: ['coordination'] },
  { of: /^api-issuers-/, reads: ['issuers'] },
  { of: /^api-join-tokens-/, reads: ['joinTokens'] },
  { of: /^api-keys-/, reads: ['keys'] },
  { of: /^api-members-/, reads: ['members'] },
  { of: /^api-peerings-/, reads: ['peerings'] },
  { of: /^api-peerings-(create|delete)$/, reads: ['coordination'] },
  { of: /^api-requests-/, reads: ['inbox'] },
  { of: /^api-requests-(approve|create|reject|withdraw)$/, reads: ['coordination', 'publishing'] },
  { of: /^api-tenant-(change|get)$/, reads: ['tenant', 'counts'], writes: ['tenant'] },
  { of: /^api-tenant-request-deletion$/, reads: ['tenant', 'peerings'], writes: ['tenant'] },
  { of: /^api-tenant-export$/, reads: ['allOfATenant'] },
  // The last step of a deletion is made at once where no peering has to end first.
  {
    of: /^api-tenant(-confirm-deletion|s-delete)$/,
    reads: ['allOfATenant', 'tenants', 'coordination', 'publishing', 'dueDeliveries'],
  },
  { of: /^api-tenants-/, reads: ['tenants', 'keys'] },
  { of: /^channel-agent-enroll$/, reads: ['joinTokens', 'clusters', 'coordination'] },
  // What is missing is decided when an agent asks.
  { of: /^channel-agent-desired$/, reads: ['coordination'], writes: ['coordination', 'changes'] },
  { of: /^channel-agent-observed$/, reads: ['coordination'] },
  {
    // The peerings of an agent that is gone, or back from silence, are looked at.
    of: /^channel-(connect|message|disconnect)$/,
    reads: ['agent', 'connections', 'coordination'],
    writes: ['heard', 'connections', 'coordination', 'changes'],
  },
  // A portal signs in with its key; each of its frames is counted, and answered with where the feed ends.
  { of: /^channel-(connect|message|disconnect)$/, reads: ['listeners'], writes: ['listeners'] },
  { of: /^channel-connect$/, reads: ['heldKeys', 'counted'], writes: ['counted'] },
  { of: /^channel-message$/, reads: ['heldKeys', 'counted', 'feed'], writes: ['counted', 'feed'] },
  { of: /^events-dispatch$/, reads: ['listeners', 'heldKeys'], writes: ['listeners'] },
  { of: /^events-peerings$/, reads: ['coordination', 'inbox'], writes: ['coordination', 'inbox', 'changes'] },
  { of: /^events-cluster-left$/, reads: ['connections'], writes: ['connections'] },
  {
    of: /^events-webhooks$/,
    reads: ['tenant', 'receivers', 'dueDeliveries'],
    writes: ['receivers', 'dueDeliveries', 'changes'],
  },
  {
    of: /^schedule-sweep$/,
    reads: ['allOfATenant', 'tenants', 'coordination', 'publishing', 'dueDeliveries'],
    writes: ['allOfATenant', 'tenants', 'coordination', 'publishing', 'dueDeliveries', 'changes'],
  },
];

interface Asked {
  readonly name: string;
  /** Of a route of the REST API. */
  readonly method?: string;
  readonly auth?: string;
  /** It notifies agents, whose connections it looks up and forgets. */
  readonly rings: boolean;
  /** It knows its caller before it has these rights. */
  readonly inSession: boolean;
}

/** Sorted, each once. */
const kindsOf = (of: readonly Area[]): readonly string[] => [...new Set(of.flatMap((area) => areas[area]))].sort();

/** Until the caller is known, and its request counted. */
export const signInRights: TableRights = { read: kindsOf(['signIn']), write: kindsOf(['counted']) };

export function tableRightsOf({ name, method, auth, rings, inSession }: Asked): TableRights {
  const own = rules.filter(({ of }) => of.test(name));
  const changes = method !== undefined && method !== 'GET';
  const isAgent = auth === 'agent' || auth === 'enroll';
  const reads: Area[] = own.flatMap((rule) => rule.reads);
  const writes: Area[] = own.flatMap((rule) => rule.writes ?? (changes ? rule.reads : []));
  if (inSession) reads.push('tenant');
  else if (auth !== undefined) {
    reads.push(isAgent ? 'agent' : 'signIn');
    writes.push(isAgent ? 'heard' : 'counted');
  }
  if (changes) writes.push('changes');
  if (method === 'POST' && !isAgent) {
    reads.push('idempotency');
    writes.push('idempotency');
  }
  if (rings) {
    reads.push('connections');
    writes.push('connections');
  }
  return { read: kindsOf(reads), write: kindsOf(writes) };
}

/** Kinds as one tenant has them, with its name for the star of the tenant, and its stream of the outbox. What no tenant owns stays. */
export const ofTenant = (kinds: readonly string[], tenant: string): readonly string[] =>
  kinds.map((kind) => {
    if (kind === '§outbox/*') return `§outbox/${tenant}`;
    return kind.startsWith(tenantItself) ? `t/${tenant}${kind.slice(tenantItself.length)}` : kind;
  });

/** As the policy's `StringLike` does, but for the tenant itself: `t/*` is its one partition, and the policy says so by a second condition. */
export const covers = (kinds: readonly string[], pk: string): boolean =>
  kinds.some((kind) => (kind === tenantItself ? /^t\/[^/]+$/ : asPattern(kind)).test(pk));

const asPattern = (kind: string): RegExp =>
  new RegExp(`^${kind.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`);
