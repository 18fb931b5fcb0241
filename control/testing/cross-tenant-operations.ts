/** Three tenants that do everything with each other that tenants can do, and try the same with what is none of their business. */
import fc from 'fast-check';
import { codeOf } from '#shared/errors/app-error.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { Caller } from '../access/caller.ts';
import { adminOf, type BrokerClusters } from './broker-clusters.ts';
import { openFacts, type SimulatedCluster } from './simulated-cluster.ts';

export const tenants = ['acme', 'bolt', 'corp'] as const;
export type Tenant = (typeof tenants)[number];
/** corp has a rome too, so that names alone prove nothing. */
export const clustersOf = { acme: ['rome', 'turin'], bolt: ['milan', 'genoa'], corp: ['oslo', 'rome'] } as const;

/** In everything that a tenant keeps for itself. */
export const innerMark = (tenant: Tenant): string => `inner-of-${tenant}`;

export const callerOf = (tenant: Tenant): Caller => ({
  ...adminOf(tenant),
  principal: `api-key/ak_${innerMark(tenant)}`,
  from: innerMark(tenant),
});

export const markedFacts = (tenant: Tenant, accepting = true): ClusterFacts => ({
  ...openFacts,
  agentVersion: innerMark(tenant),
  apiServerUrl: `https://${innerMark(tenant)}.example:6443`,
  apiServerCa: innerMark(tenant),
  policies: openFacts.policies.map((policy) => ({
    ...policy,
    name: innerMark(tenant),
    tenants: ['*'],
    asConsumer: { ...policy.asConsumer, autoAccept: accepting },
  })),
});

const tenant = fc.constantFrom(...tenants);
const pick = fc.nat(1_000);
/** Operations that reach only the caller's own items, for every input. */
export const inwardOps = [
  'get',
  'list',
  'find',
  'label',
  'invite',
  'invitations',
  'invitation',
  'requests',
  'request',
  'rule',
  'rules',
  'unrule',
  'publish',
  'unpublish',
  'directory',
  'events',
  'audit',
  'clusters',
  'pull',
] as const;
const outwardOps = [
  'redeem',
  'revoke',
  'ask',
  'approve',
  'reject',
  'withdraw',
  'unpeer',
  'change',
  'report',
  'gossip',
  'policy',
  'remove',
  'rejoin',
] as const;
export const operation = fc.record({
  op: fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...inwardOps) },
    { weight: 2, arbitrary: fc.constantFrom(...outwardOps) },
    { weight: 3, arbitrary: fc.constantFrom('pull', 'report', 'redeem', 'ask', 'approve', 'invite', 'publish') },
  ),
  tenant,
  other: tenant,
  which: fc.nat(1),
  pick,
});
export type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

export interface Known {
  readonly codes: string[];
  /** Every id, and the tenants that it is of. */
  readonly ids: Map<string, ReadonlySet<string>>;
  readonly played: Map<string, SimulatedCluster>;
}

export const placeOf = (of: string, cluster: string): string => `${of}/${cluster}`;
const someId = (known: Known, prefix: string, n: number): string => {
  const ids = [...known.ids.keys()].filter((id) => id.startsWith(prefix));
  return ids[n % Math.max(1, ids.length)] ?? `${prefix}none`;
};

/** Ends with the answer; remembers what came into being. */
export async function perform(clusters: BrokerClusters, known: Known, what: Operation): Promise<unknown> {
  const { control, clock } = clusters;
  const { op, tenant: of, other, which, pick: n } = what;
  const caller = callerOf(of);
  const cluster = clustersOf[of][which] ?? 'rome';
  const theirs = clustersOf[other][n % 2] ?? 'rome';
  const agent = known.played.get(placeOf(of, cluster));
  const peering = someId(known, 'pe_', n);
  const learn = (id: string | undefined, ...parties: string[]): void => {
    if (id !== undefined) known.ids.set(id, new Set(parties));
  };
  switch (op) {
    case 'get':
      return control.peerings.get(caller, peering);
    case 'list':
      return control.peerings.list(caller, { includeGone: n % 2 === 0, ...(n % 3 ? {} : { cluster }) });
    case 'find':
      return control.peerings.find(caller, cluster, theirs);
    case 'label':
      return control.peerings.label(caller, peering, { labels: n % 4 ? { [innerMark(of)]: innerMark(of) } : {} });
    case 'unpeer':
      return control.peerings.unpeer(caller, peering);
    case 'change':
      return control.peerings.request(caller, { consumer: cluster, provider: theirs, resources: { cpu: `${n % 6}` } });
    case 'invite': {
      const input = { cluster, limits: { cpu: '4' }, uses: (n % 3) + 1, note: innerMark(of) };
      const made = await control.invitations.create(caller, input);
      known.codes.push(made.code);
      learn(made.invitation.id, of);
      return made;
    }
    case 'redeem': {
      const code = known.codes[n % Math.max(1, known.codes.length)] ?? 'isi_none';
      const redeemed = await control.invitations.redeem(caller, { code, consumer: cluster });
      learn(redeemed.peering.id, of, redeemed.peering.across?.peerTenant ?? '');
      return redeemed;
    }
    case 'revoke':
      return control.invitations.revoke(caller, someId(known, 'iv_', n));
    case 'invitation':
      return control.invitations.get(caller, someId(known, 'iv_', n));
    case 'invitations':
      return control.invitations.list(caller);
    case 'ask': {
      const reason = `asked by ${of}`;
      const wanted = { consumer: cluster, providerTenant: other, provider: theirs, resources: { cpu: '1' }, reason };
      const { request } = await control.requests.ask(caller, wanted);
      learn(request.id, of, other);
      learn(request.peering, of, other);
      return request;
    }
    case 'approve': {
      const request = await control.requests.approve(caller, someId(known, 'rq_', n), 'yes');
      learn(request.peering, request.consumerTenant, request.providerTenant);
      return request;
    }
    case 'reject':
      return control.requests.reject(caller, someId(known, 'rq_', n), 'no');
    case 'withdraw':
      return control.requests.withdraw(caller, someId(known, 'rq_', n));
    case 'request':
      return control.requests.get(caller, someId(known, 'rq_', n));
    case 'requests':
      return control.requests.list(caller, n % 2 ? { direction: 'sent' } : {});
    case 'rule': {
      const rule = await control.approvalRules.create(caller, { name: innerMark(of), tenants: [other], uses: 2 });
      learn(rule.id, of);
      return rule;
    }
    case 'rules':
      return control.approvalRules.list(caller);
    case 'unrule':
      return control.approvalRules.delete(caller, someId(known, 'ar_', n));
    case 'publish':
      return control.directory.publish(caller, { cluster, description: `offered by ${of}` });
    case 'unpublish':
      return control.directory.unpublish(caller, cluster);
    case 'directory':
      return control.directory.list(caller, n % 2 ? { mine: true } : {});
    case 'events':
      return control.events.list(caller, { limit: 100 });
    case 'audit':
      return control.audit.list(caller, { limit: 100 });
    case 'clusters':
      return control.clusters.list(caller, { includeLeft: true });
    case 'pull':
      await agent?.pull();
      agent?.work((id, peerTenant) => known.played.get(placeOf(peerTenant ?? of, id)));
      return agent?.answers;
    case 'report':
      return agent?.report();
    case 'gossip':
      return gossip(clusters, { of, cluster, peering, n });
    case 'policy':
      if (agent) agent.facts = markedFacts(of, n % 2 === 0);
      return agent?.report();
    case 'remove':
      return n % 12 === 0 ? control.clusters.remove(caller, cluster, { force: true }) : undefined;
    case 'rejoin':
      clock.advance(1_000);
      return undefined;
  }
}

/** An agent that says what it likes about any peering, in words that are its tenant's own. */
async function gossip(
  clusters: BrokerClusters,
  { of, cluster, peering, n }: { of: Tenant; cluster: string; peering: string; n: number },
): Promise<void> {
  const words = innerMark(of);
  const object = { apiVersion: 'v1', uid: words, namespace: words };
  const conditions = ['Authentication', 'Resources'].map((type) => ({
    type,
    status: n % 3 ? 'Denied' : 'Accepted',
    reason: words,
    message: words,
  }));
  const agent = { ...callerOf(of), clusterId: cluster, principal: `cluster/${cluster}` };
  const [, peer = ''] = (await clusters.control.peerings
    .get(callerOf(of), peering)
    .then(({ consumer, provider }) => [consumer, provider])
    .catch(() => [])) as string[];
  await clusters.control.exchange.observe(agent, {
    sets: [
      {
        peering,
        role: n % 2 ? 'consumer' : 'provider',
        appliedRevision: n,
        objects: [
          {
            ...object,
            kind: 'ResourceSlice',
            name: peer,
            data: { conditions, resources: { [words]: words, cpu: '1' } },
          },
          { ...object, kind: 'Node', name: peer, data: { ready: n % 5 === 0, reason: words, message: words } },
        ],
        refusals: n % 4 ? [] : [{ object: `Tenant/${words}`, code: 'object_not_allowed', message: words }],
      },
    ],
  });
}

const refusals: ReadonlySet<string> = new Set([
  'not_found',
  'cluster_unknown',
  'peer_self',
  'in_use',
  'policy_refused',
  'consent_exceeded',
  'cluster_id_taken',
  'invitation_unknown',
  'invitation_closed',
  'request_closed',
  'invalid_input',
]);

export const isRefusal = (error: unknown): boolean => refusals.has(codeOf(error) ?? '');
