/** The REST API without a socket: the very handlers on a memory store and a manual clock, for tests that ask much. */
import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { createHttpsJson } from '#control/adapters/https-json/https-json.ts';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { createSealedBox } from '#control/adapters/sealed-box/sealed-box.ts';
import { createWebhookHttp } from '#control/adapters/webhook-http/webhook-http.ts';
import type { Control } from '#control/control.ts';
import { createControl } from '#control/control.ts';
import type { Limits } from '#control/model/limits.ts';
import type { DocumentSource } from '#control/ports/document-source.ts';
import type { Store } from '#control/ports/store.ts';
import { type AgentKeys, newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { openFacts } from '#control/testing/simulated-cluster.ts';
import { fromGatewayResult, toGatewayEvent } from '#functions/local/gateway-event.ts';
import { createRouter } from '#functions/local/gateway-router.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { refusalsOf } from '#functions/refusals.ts';
import { httpFunctions } from '#functions/routes.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { problemResponse } from '#functions/runtime/problem.ts';
import type { AnyRoute } from '#functions/runtime/route.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import type { AgentClaims } from '#shared/schema/protocol/agent-identity.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import { createTableGuard, MissingRight, type TableGuard } from './table-guard.ts';

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
  readonly text: string;
}

export interface ApiCall {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Sent as `authorization: Bearer …`. */
  readonly key?: string | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiFixtureOptions {
  readonly clock?: ManualClock;
  readonly ids?: Ids;
  readonly log?: Log;
  readonly limits?: Limits;
  readonly documents?: DocumentSource;
  readonly wrap?: (store: Store) => Store;
  /** How long polls hear of changes. Default: they look again at once. */
  readonly listen?: Composition['listen'];
  /** To be shared by several processes. */
  readonly store?: Store;
  /** What this broker cannot do, as one without a key for secrets or without an identity at AWS. */
  readonly without?: 'webhooks' | 'event-targets';
}

/** A cluster that is to join; `key` is a key of its tenant that makes join tokens. */
interface Joining {
  readonly tenant: string;
  readonly key: string;
  readonly cluster: string;
  readonly facts?: ClusterFacts;
  readonly keys?: AgentKeys;
}

export interface ApiFixture {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly control: Control;
  readonly composition: Composition;
  readonly operatorKey: string;
  /** Holds functions that a test calls by itself against their rights. */
  readonly guard: TableGuard;
  call(call: ApiCall): Promise<ApiAnswer>;
  /** A tenant with its first admin key. */
  tenant(name: string): Promise<string>;
  /** A key of a tenant, made by its admin. */
  keyOf(admin: string, role: 'viewer' | 'operator' | 'admin'): Promise<string>;
  /** Makes a join token and enrols with it. */
  join(joining: Joining): Promise<ApiAnswer>;
  /** A request of an agent, signed for what it says. */
  signed(
    agent: Pick<Joining, 'tenant' | 'cluster'> & { readonly keys: AgentKeys },
    call: ApiCall,
    claims?: Partial<AgentClaims>,
  ): Promise<ApiAnswer>;
}

/** A code that the OpenAPI document does not list for the operation is a defect, whichever test meets it. */
function mustBeDocumented(route: AnyRoute, code: ErrorCode): void {
  if (refusalsOf(route).includes(code)) return;
  throw new Error(`${route.method} ${route.path} answers ${code}, which its route does not list in refusals`);
}

/**
 * An answer that the OpenAPI document does not have is a defect: a status that its route does not list, a field too many, too few or of another shape. Bodies
 * that are not JSON have no schema.
 */
function mustBeAsDocumented(route: AnyRoute, status: number, body: unknown): void {
  const name = `${route.method} ${route.path} answers ${status}`;
  const answer = route.answers[status];
  if (answer === undefined) throw new Error(`${name}, which its route does not list in answers`);
  if (answer.body === undefined || body === undefined) return;
  const read = answer.body.safeParse(body);
  if (!read.success) throw new Error(`${name} with another body than its route says: ${z.prettifyError(read.error)}`);
  if (!isDeepStrictEqual(read.data, body))
    throw new Error(`${name} with fields that its route does not list: ${JSON.stringify(body)}`);
}

export const apiUrl = 'https://broker.test:8443';

export async function createApiFixture(options: ApiFixtureOptions = {}): Promise<ApiFixture> {
  const { clock = new ManualClock(), log = silentLog, wrap = (store) => store } = options;
  const ids = options.ids ?? createSystemIds(() => clock.now());
  const store = options.store ?? wrap(createMemoryStore({ clock }));
  const guard = createTableGuard();
  const uses: Omit<Parameters<typeof createControl>[0], 'store'> = {
    clock,
    ids,
    log,
    channel: { ring: () => guard.rings() },
    broker: () => ({ url: apiUrl }),
    documents: options.documents ?? createHttpsJson({ allowPrivateAddresses: true }),
    ...(options.without !== 'webhooks' && { secretBox: createSealedBox(new Uint8Array(32)) }),
    webhookSender: createWebhookHttp(),
    ...(options.without !== 'event-targets' && {
      eventTargetSender: {
        principal: 'arn:aws:iam::210987654321:root',
        send: async () => ({ error: 'no target here' }),
      },
    }),
    ...(options.limits && { limits: options.limits }),
  };
  const control = createControl({ ...uses, store: guard.guarded(store) });
  const composition: Composition = {
    control,
    controlOf: (tenant) =>
      guard.hasSessions() ? createControl({ ...uses, store: guard.guarded(store, tenant) }) : control,
    connections: {
      opened: async () => undefined,
      listens: async () => undefined,
      holderOf: async () => undefined,
      closed: async () => undefined,
      hangUp: async () => 0,
      close: async () => undefined,
    },
    clock,
    log,
    version: '0',
    listen: options.listen ?? (() => ({ changed: async () => true, end: () => undefined })),
  };
  const router = createRouter(httpFunctions);
  const origin = { from: 'test', requestId: 'start' };
  const operatorKey =
    (await control.tenants.operators.bootstrap(origin)) ?? (await control.tenants.operators.issue(origin));

  async function call({ method, path, key, body, headers = {} }: ApiCall): Promise<ApiAnswer> {
    const requestId = ids.next('req');
    const sent =
      body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    let documented: AnyRoute | undefined;
    const result = await (async () => {
      const { run, ...route } = router(method, path.split('?')[0] ?? '');
      documented = run.route;
      const request = {
        method,
        url: path,
        headers: {
          ...(key !== undefined && { authorization: `Bearer ${key}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        sourceIp: '192.0.2.1',
        body: sent,
        requestId,
        receivedAt: clock.now(),
      };
      return guard.asFunctionOf(route.routeKey, async () =>
        run(toGatewayEvent(request, route), invocationContext(composition, route.routeKey, requestId)),
      );
    })().catch((error: unknown) => {
      if (error instanceof MissingRight) throw error;
      return problemResponse(error, requestId);
    });
    const answer = fromGatewayResult(result);
    const text = answer.body.toString('utf8');
    const json = String(answer.headers['content-type'] ?? '').includes('json') && !text.includes('\n');
    const parsed = json && text !== '' ? JSON.parse(text) : undefined;
    if (documented && answer.statusCode >= 400) mustBeDocumented(documented, parsed.code);
    else if (documented && answer.statusCode !== 304) mustBeAsDocumented(documented, answer.statusCode, parsed);
    return {
      status: answer.statusCode,
      headers: answer.headers as Record<string, string>,
      text,
      body: parsed,
    };
  }

  const signed: ApiFixture['signed'] = async ({ tenant, cluster: clusterId, keys }, toSend, claims) => {
    const sent = toSend.body === undefined ? '' : JSON.stringify(toSend.body);
    const { authorization = '' } = await signRequest({
      keys,
      tenant,
      clusterId,
      audience: apiUrl,
      now: clock.now(),
      method: toSend.method,
      path: toSend.path.split('?')[0] ?? '',
      body: sent,
      ...(claims && { claims }),
    });
    return call({ ...toSend, key: undefined, headers: { ...toSend.headers, authorization } });
  };

  return {
    signed,
    async join({ tenant, key, cluster, facts = openFacts, keys = newAgentKeys() }) {
      const { body: made } = await call({ method: 'POST', path: '/v1/join-tokens', key, body: { cluster } });
      const { secret } = JSON.parse(Buffer.from(made.token.slice('isthmus1.'.length), 'base64url').toString()) as {
        secret: string;
      };
      const body = { clusterId: cluster, token: secret, publicKey: keys.publicKey, facts };
      return signed({ tenant, cluster, keys }, { method: 'POST', path: '/v1/agent/enroll', body });
    },
    clock,
    store,
    control,
    composition,
    operatorKey,
    guard,
    call,
    async tenant(name) {
      const { body } = await call({ method: 'POST', path: '/v1/tenants', key: operatorKey, body: { name } });
      return body.firstKey.secret;
    },
    async keyOf(admin, role) {
      const { body } = await call({ method: 'POST', path: '/v1/keys', key: admin, body: { name: role, role } });
      return body.secret;
    },
  };
}
