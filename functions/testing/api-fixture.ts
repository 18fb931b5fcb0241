/** The REST API without a socket: the very handlers on a memory store and a manual clock, for tests that ask much. */
import { createHttpsJson } from '#control/adapters/https-json/https-json.ts';
import { createMemoryStore } from '#control/adapters/memory/memory-store.ts';
import { createSealedBox } from '#control/adapters/sealed-box/sealed-box.ts';
import { createWebhookHttp } from '#control/adapters/webhook-http/webhook-http.ts';
import type { Control } from '#control/control.ts';
import { createControl } from '#control/control.ts';
import type { Limits } from '#control/model/limits.ts';
import type { DocumentSource } from '#control/ports/document-source.ts';
import type { Store } from '#control/ports/store.ts';
import { fromGatewayResult, toGatewayEvent } from '#functions/local/gateway-event.ts';
import { createRouter } from '#functions/local/gateway-router.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { httpFunctions } from '#functions/routes.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { problemResponse } from '#functions/runtime/problem.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';

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
  /** To be shared by several processes. */
  readonly store?: Store;
}

export interface ApiFixture {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly control: Control;
  readonly composition: Composition;
  readonly operatorKey: string;
  call(call: ApiCall): Promise<ApiAnswer>;
  /** A tenant with its first admin key. */
  tenant(name: string): Promise<string>;
  /** A key of a tenant, made by its admin. */
  keyOf(admin: string, role: 'viewer' | 'operator' | 'admin'): Promise<string>;
}

export const apiUrl = 'https://broker.test:8443';

export async function createApiFixture(options: ApiFixtureOptions = {}): Promise<ApiFixture> {
  const { clock = new ManualClock(), log = silentLog, wrap = (store) => store } = options;
  const ids = options.ids ?? createSystemIds(() => clock.now());
  const store = options.store ?? wrap(createMemoryStore({ clock }));
  const control = createControl({
    store,
    clock,
    ids,
    log,
    channel: { ring: () => undefined },
    broker: () => ({ url: apiUrl }),
    documents: options.documents ?? createHttpsJson({ allowPrivateAddresses: true }),
    secretBox: createSealedBox(new Uint8Array(32)),
    webhookSender: createWebhookHttp(),
    eventTargetSender: { principal: 'arn:aws:iam::210987654321:root', send: async () => ({ error: 'no target here' }) },
    ...(options.limits && { limits: options.limits }),
  });
  const composition: Composition = {
    control,
    connections: {
      opened: async () => undefined,
      agentOf: async () => undefined,
      closed: async () => undefined,
      hangUp: async () => 0,
    },
    clock,
    log,
    version: '0',
    untilChange: async () => undefined,
  };
  const router = createRouter(httpFunctions);
  const origin = { from: 'test', requestId: 'start' };
  const operatorKey =
    (await control.tenants.operators.bootstrap(origin)) ?? (await control.tenants.operators.issue(origin));

  async function call({ method, path, key, body, headers = {} }: ApiCall): Promise<ApiAnswer> {
    const requestId = ids.next('req');
    const sent =
      body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const result = await (async () => {
      const { run, ...route } = router(method, path.split('?')[0] ?? '');
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
      return run(toGatewayEvent(request, route), invocationContext(composition, route.routeKey, requestId));
    })().catch((error: unknown) => problemResponse(error, requestId));
    const answer = fromGatewayResult(result);
    const text = answer.body.toString('utf8');
    const json = String(answer.headers['content-type'] ?? '').includes('json') && !text.includes('\n');
    return {
      status: answer.statusCode,
      headers: answer.headers as Record<string, string>,
      text,
      body: json && text !== '' ? JSON.parse(text) : undefined,
    };
  }

  return {
    clock,
    store,
    control,
    composition,
    operatorKey,
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
