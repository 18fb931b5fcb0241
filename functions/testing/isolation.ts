/**
 * Many tenants do everything that the API document describes, to their own things and to each other's. Four nets are spread: the store refuses
 * a key outside the tenant that is being served; no answer holds a mark or an id of another tenant; another tenant's object is answered as one
 * that never existed; and what is written through one tenant is never found in another's events.
 */
import { selfHostedLimits } from '#control/limits/limits.ts';
import { newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { type ApiAnswer, type ApiCall, apiUrl, createApiFixture } from './api-fixture.ts';
import { fromSchema, type Schema, seededChoice } from './from-schema.ts';
import { imaginedProviders } from './imagined-providers.ts';
import { acrossByDesign, notPerformed } from './isolation-design.ts';
import { guarded, IsolationBroken, type Serving } from './isolation-guard.ts';
import { enroll, renewKeys, type Tenant } from './isolation-tenants.ts';
import { type Operation, operations, schemaOf } from './operations.ts';
import { openPortals, recordEvents } from './portals.ts';

export interface IsolationReport {
  readonly operations: number;
  readonly twins: number;
  /** Frames to portals that listen. */
  readonly told: number;
  readonly byStatus: Readonly<Record<string, number>>;
  /** How often each operation was performed, and how often with success. */
  readonly byOperation: Readonly<Record<string, { readonly tried: number; readonly done: number }>>;
}

const idPattern = /\b[a-z]{2,3}_[0-9a-z]{26}\b/g;
const prefixOf: Readonly<Record<string, string>> = {
  peering: 'pe_',
  key: 'ak_',
  member: 'mb_',
  issuer: 'is_',
  request: 'rq_',
  invitation: 'iv_',
  rule: 'ar_',
  webhook: 'wh_',
  target: 'et_',
  delivery: 'ev_',
};
const clusterNames = /^(cluster|consumer|provider|clusterId)$/;

const tenantNames = ['amber', 'basalt', 'cobalt', 'dolomite', 'emerald', 'flint', 'granite', 'hematite'];

/** One world, so many operations; throws `IsolationBroken` at the first breach. */
export async function runIsolation({
  seed,
  count,
  tenants: howMany = 4,
}: {
  readonly seed: number;
  readonly count: number;
  readonly tenants?: number;
}): Promise<IsolationReport> {
  const choice = seededChoice(seed);
  let serving: Serving | undefined;
  let broken: IsolationBroken | undefined;
  const breach = (what: string): IsolationBroken => {
    broken = new IsolationBroken(what);
    return broken;
  };
  const events = recordEvents();
  const fixture = await createApiFixture({
    limits: selfHostedLimits,
    documents: imaginedProviders,
    wrap: (store) => guarded(events.wrap(store), () => serving, breach),
  });
  const portals = openPortals(fixture, events);
  const agentKeys = newAgentKeys();
  const tenants: Tenant[] = [];
  for (const [i, name] of tenantNames.slice(0, howMany).entries()) {
    const clusters = ['rome', 'milan', `only-${i}-${name}`];
    const tenant: Tenant = { name, mark: `mark-${i}${name}`, clusters, keys: {}, sent: new Set() };
    await fixture.tenant(name);
    for (const cluster of clusters) await enroll(fixture, tenant, cluster, agentKeys);
    await renewKeys(fixture, tenant);
    tenants.push(tenant);
  }
  const owners = new Map<string, string>();
  const byPrefix = new Map<string, string[]>();
  const cursors: string[] = [];
  const byStatus: Record<string, number> = {};
  const byOperation: Record<string, { tried: number; done: number }> = {};
  let twins = 0;
  let told = 0;

  /** A portal of each tenant hears that there is news, of its own tenant and no other, and nothing of what it is. */
  async function tellPortals(): Promise<void> {
    const { streams, frames } = await portals.dispatch();
    for (const { connectionId: name, frame } of frames) {
      if (!streams.has(name))
        throw new IsolationBroken(`a portal of ${name} was told, and nothing of it was committed`);
      const text = JSON.stringify(frame);
      if (text !== '{"type":"events"}') throw new IsolationBroken(`a portal of ${name} was told ${text}`);
      told += 1;
    }
    for (const { name, keys } of tenants) {
      if (portals.isOpen(name)) continue;
      const { status } = await portals.connect(name, keys.viewer ?? '');
      if (status !== 200 && status !== 401) throw new IsolationBroken(`a portal of ${name} was refused: ${status}`);
    }
  }

  /** Everything new in an answer to a tenant is its own. */
  function learn(tenant: Tenant, { text, status, body }: ApiAnswer, sentText: string): void {
    if (status >= 300) return;
    if (typeof body?.cursor === 'string' && cursors.length < 200) cursors.push(body.cursor);
    for (const [id] of text.matchAll(idPattern)) {
      const shared = sharedIds.test(id);
      if (owners.has(id) || sentText.includes(id) || (shared && !id.startsWith('rq_'))) continue;
      if (!shared) owners.set(id, tenant.name);
      const prefix = id.slice(0, id.indexOf('_') + 1);
      const list = byPrefix.get(prefix) ?? [];
      if (list.length < 400) list.push(id);
      else list[choice.below(400)] = id;
      byPrefix.set(prefix, list);
    }
  }

  /** Half of the time one of the own, if there is any; else anybody's, or one that never was. */
  function someId(tenant: Tenant, name: string): string {
    const prefix = prefixOf[name];
    const list = prefix === undefined ? [...byPrefix.values()].flat() : (byPrefix.get(prefix) ?? []);
    if (list.length === 0 || choice.below(6) === 0) return never(name);
    const own = choice.below(2) === 0 ? list.filter((id) => owners.get(id) === tenant.name) : [];
    return choice.pick(own.length > 0 ? own : list);
  }
  const someCluster = (tenant: Tenant): string =>
    choice.below(4) === 0 ? choice.pick(choice.pick(tenants).clusters) : choice.pick(tenant.clusters);

  /** What crosses on purpose carries no mark: it is read on the other side. */
  const word = (tenant: Tenant, operation: Operation): string =>
    `${operation.id in acrossByDesign ? 'word' : tenant.mark}-${choice.below(1_000)}`;

  function textFor(tenant: Tenant, operation: Operation, name: string, schema: Schema): string {
    if (clusterNames.test(name)) return someCluster(tenant);
    if (name === 'tenant' || name === 'providerTenant') return choice.pick(tenants).name;
    if (name === 'key') return choice.pick(['cpu', 'memory', 'pods']);
    if (name === 'class') return 'default';
    if (name === 'types') return '*';
    if (name === 'arn') return `arn:aws:sqs:eu-central-1:123456789012:${tenant.mark}`;
    if (name === 'roleArn') return `arn:aws:iam::123456789012:role/isthmus-events-${tenant.mark}`;
    if (name in prefixOf || name === 'subject')
      return name === 'subject' ? `peering/${someId(tenant, 'peering')}` : someId(tenant, name);
    if (name === 'cursor') return cursors.length > 0 && choice.below(2) === 0 ? choice.pick(cursors) : 'bm9uZQ';
    if (schema.format === 'email') return `p${choice.below(1_000)}@${tenant.mark}.example`;
    if (schema.format === 'uri' || name === 'url' || name === 'issuer') return `https://${tenant.mark}.invalid`;
    if (schema.format === 'date-time') return new Date(fixture.clock.now() + 3_600_000).toISOString();
    if (name === 'cpu' || name === 'memory' || name === 'pods') return String(1 + choice.below(3));
    return word(tenant, operation);
  }

  function callOf(tenant: Tenant, operation: Operation): ApiCall {
    const source = {
      choice,
      resolve: schemaOf,
      text: (name: string, schema: Schema) => textFor(tenant, operation, name, schema),
    };
    let path = operation.path;
    const query = new URLSearchParams();
    for (const { name, in: where, required, schema } of operation.parameters) {
      if (where === 'path') {
        const value = clusterNames.test(name)
          ? someCluster(tenant)
          : name === 'tenant'
            ? choice.pick(tenants).name
            : someId(tenant, name);
        path = path.replace(`{${name}}`, encodeURIComponent(value));
      }
      if (where !== 'query' || name === 'wait' || !(required || choice.below(3) === 0)) continue;
      query.set(name, String(fromSchema(schema, source, name)));
    }
    const text = query.toString();
    const body = operation.body && fromSchema(operation.body, source);
    const key = tenant.keys[choice.below(8) === 0 ? choice.pick(['viewer', 'operator'] as const) : 'admin'];
    return {
      method: operation.method,
      path: text === '' ? path : `${path}?${text}`,
      key,
      ...(body !== undefined && { body }),
    };
  }

  async function send(tenant: Tenant, operation: Operation, call: ApiCall, clusterId: string): Promise<ApiAnswer> {
    let sent = call;
    if (operation.agent) {
      const body = call.body === undefined ? '' : JSON.stringify(call.body);
      const { authorization = '' } = await signRequest({
        keys: agentKeys,
        tenant: tenant.name,
        clusterId,
        audience: apiUrl,
        now: fixture.clock.now(),
        method: call.method,
        path: call.path.split('?')[0] ?? '',
        body,
      });
      sent = { ...call, key: undefined, headers: { authorization } };
    }
    serving = { tenant: tenant.name, across: operation.id in acrossByDesign };
    try {
      return await fixture.call(sent);
    } finally {
      serving = undefined;
    }
  }

  function check(tenant: Tenant, operation: Operation, answer: ApiAnswer, sentText: string): void {
    if (broken)
      throw new IsolationBroken(`${operation.id} by ${tenant.name}: ${broken.message}; ${sentText.slice(0, 500)}`);
    const told = `${operation.method} ${operation.path} by ${tenant.name} answered ${answer.status}`;
    if (answer.status >= 500)
      throw new IsolationBroken(`${told}: ${answer.text.slice(0, 500)} to ${sentText.slice(0, 500)}`);
    if (operation.id in acrossByDesign) return;
    const foreign = tenants.find((other) => other !== tenant && answer.text.includes(other.mark));
    if (foreign) throw new IsolationBroken(`${told} with words of ${foreign.name}: ${answer.text.slice(0, 500)}`);
    for (const [id] of answer.text.matchAll(idPattern)) {
      const owner = owners.get(id);
      if (owner === undefined || owner === tenant.name || tenant.sent.has(id)) continue;
      throw new IsolationBroken(`${told} with ${id} of ${owner}: ${answer.text.slice(0, 500)}`);
    }
  }

  /** The same request about things that never were, when it names things of others: the answers must be alike. */
  function twinOf(
    tenant: Tenant,
    call: ApiCall,
  ): { readonly twin: ApiCall; readonly foreign: readonly string[] } | undefined {
    const text = JSON.stringify([call.path, call.body]);
    const foreign = [...new Set(text.match(idPattern) ?? [])].filter(
      (id) => owners.has(id) && owners.get(id) !== tenant.name,
    );
    for (const other of tenants) {
      const only = other.clusters.at(-1) ?? '';
      if (other !== tenant && text.includes(only)) foreign.push(only);
      if (other !== tenant && call.path.includes(`/v1/tenants/${other.name}`)) foreign.push(other.name);
    }
    if (foreign.length === 0) return undefined;
    const swapped = foreign.reduce((t, name) => t.replaceAll(name, never(name)), text);
    const [path, body] = JSON.parse(swapped) as [string, unknown];
    return { twin: { ...call, path, ...(call.body !== undefined && { body }) }, foreign };
  }

  for (let i = 0; i < count; i += 1) {
    const tenant = choice.pick(tenants);
    const operation = choice.pick(performed);
    const call = callOf(tenant, operation);
    const signer = choice.pick(tenant.clusters);
    const sentText = JSON.stringify([call.path, call.body]);
    for (const [id] of sentText.matchAll(idPattern)) if (owners.get(id) !== tenant.name) tenant.sent.add(id);
    const pair = operation.id in acrossByDesign ? undefined : twinOf(tenant, call);
    const twinFirst = choice.below(2) === 0;
    let other = pair && twinFirst ? await send(tenant, operation, pair.twin, signer) : undefined;
    const answer = await send(tenant, operation, call, signer);
    check(tenant, operation, answer, sentText);
    if (pair) {
      other ??= await send(tenant, operation, pair.twin, signer);
      twins += 1;
      const first = twinFirst ? other : answer;
      const [mine, nobodys] = [shapeOf(answer, pair.foreign), shapeOf(other, pair.foreign)];
      // A first that changed something of its own makes the second another request.
      if (mine !== nobodys && (first.status >= 400 || call.method === 'GET')) {
        throw new IsolationBroken(
          `${call.method} ${call.path} ${JSON.stringify(call.body)} by ${tenant.name} tells what exists elsewhere: ${mine} against ${nobodys}`,
        );
      }
    }
    learn(tenant, answer, sentText);
    byStatus[answer.status] = (byStatus[answer.status] ?? 0) + 1;
    const counted = byOperation[operation.id] ?? { tried: 0, done: 0 };
    byOperation[operation.id] = counted;
    counted.tried += 1;
    if (answer.status < 300) counted.done += 1;
    fixture.clock.advance(40);
    // Keys get revoked and clusters removed on the way.
    if (answer.status === 401 && !operation.agent) await renewKeys(fixture, tenant);
    if (i % 97 === 0) for (const cluster of tenant.clusters) await enroll(fixture, tenant, cluster, agentKeys);
    if (i % 503 === 0) await fixture.control.peerings.sweep();
    if (i % 3 === 0) await tellPortals();
  }
  return { operations: count, twins, told, byStatus, byOperation };
}

const performed = operations.filter(({ id }) => !(id in notPerformed));

/** A well-formed id that belongs to no object: no id was made at time zero. */
function never(like: string): string {
  const match = /^([a-z]{2,3}_)[0-9a-z]{10}([0-9a-z]{16})$/.exec(like);
  if (match) return `${match[1]}0000000000${match[2]}`;
  const prefix = prefixOf[like];
  return prefix === undefined ? `never-${like}` : `${prefix}${'0'.repeat(26)}`;
}

/** Status, and the names and words of the answer without what differs by nature. */
function shapeOf({ status, body, text }: ApiAnswer, foreign: readonly string[]): string {
  if (status < 400)
    return `${status} ${Object.keys(body ?? {})
      .sort()
      .join(',')}`;
  const plain = foreign.reduce((t, name) => t.replaceAll(never(name), '*').replaceAll(name, '*'), text);
  return `${status} ${plain.replaceAll(idPattern, '*')}`;
}

/** Requests (and the HTTP requests that made them) are known to the tenant that asks and the one that is asked, operators to the audit log of every tenant that they made; an id that never existed belongs to none. */
const sharedIds = /^(rq|ok|req)_|^[a-z]+_0{10}/;
