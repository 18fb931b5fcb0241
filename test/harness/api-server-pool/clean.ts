/** Brings an API server back to an earlier state through its own API, and proves it by comparing everything it serves. */
import https from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import * as tls from 'node:tls';
import type { Access } from '#test/testbed/api-ready.ts';
import {
  type ApiObject,
  differenceOf,
  type Held,
  isEqual,
  keyOf,
  ofTypes,
  type ServedType,
  type State,
  type Step,
  stepsOf,
  typesOf,
  wordsOf,
} from './state.ts';

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Administrator's requests on kept connections. */
export class AdminApi {
  readonly #access: Access;
  readonly #agent: https.Agent;

  constructor(access: Access) {
    this.#access = access;
    const { ca, cert, key } = access;
    // One TLS context for all sockets, for the reason that kube/http/tls.ts gives.
    const secureContext = tls.createSecureContext({ ca, cert, key });
    this.#agent = new https.Agent({ keepAlive: true, maxSockets: 6, secureContext });
  }

  call(method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      // Node frames the body of a DELETE by its length or not at all, and the server would take it for the next request.
      const framed = text === undefined ? {} : { 'content-type': type, 'content-length': `${Buffer.byteLength(text)}` };
      const all = { accept: 'application/json', ...framed, ...headers };
      const options = { method, agent: this.#agent, headers: all, timeout: 10_000 };
      const request = https.request(new URL(path, this.#access.url), options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
      });
      request.on('timeout', () => request.destroy(new Error(`${method} ${path}: no answer within 10 s`)));
      request.on('error', reject);
      request.end(text);
    });
  }

  async read<T>(path: string, headers?: Readonly<Record<string, string>>): Promise<T> {
    const { status, body } = await this.call('GET', path, undefined, headers);
    if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${body.slice(0, 300)}`);
    return JSON.parse(body) as T;
  }

  close(): void {
    this.#agent.destroy();
  }
}

interface Discovery {
  readonly items: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly {
      readonly version: string;
      readonly freshness?: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly scope: string;
        readonly verbs: readonly string[];
      }[];
    }[];
  }[];
}

const aggregated = { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' };
/** The same objects as `events` of the core group. */
const servedTwice = new Set(['events.k8s.io']);

/** Everything that can be listed and deleted, in the preferred version of its group. */
async function servedTypes(api: AdminApi): Promise<ServedType[]> {
  const all = await Promise.all(['/api', '/apis'].map((path) => api.read<Discovery>(path, aggregated)));
  return all
    .flatMap(({ items }) => items)
    .flatMap(({ metadata, versions }) => {
      const group = metadata?.name ?? '';
      const seen = new Set<string>();
      return (versions ?? []).flatMap(({ version, resources }) =>
        (resources ?? []).flatMap(({ resource: plural, scope, verbs }): ServedType[] => {
          const isOurs = !seen.has(plural) && verbs.includes('list') && verbs.includes('delete');
          seen.add(plural);
          return isOurs && !servedTwice.has(group)
            ? [{ group, version, plural, namespaced: scope === 'Namespaced', verbs }]
            : [];
        }),
      );
    });
}

function pathOf({ group, version, plural, namespaced }: ServedType, namespace?: string, name?: string): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${namespace}` : '';
  return `${root}${scope}/${plural}${name === undefined ? '' : `/${name}`}`;
}

const itemPath = ({ type, object }: Held): string => pathOf(type, object.metadata.namespace, object.metadata.name);

/** `only`: the types to look at; everything that is served unless told. */
export async function readState(api: AdminApi, only?: readonly ServedType[]): Promise<State> {
  const types = only ?? (await servedTypes(api));
  const lists = await Promise.all(
    types.map(async (type) => {
      const { status, body } = await api.call('GET', pathOf(type));
      // A kind that is being removed is still discovered for a moment.
      if (status === 404) return [];
      if (status !== 200)
        throw new Error(`listing ${type.plural}.${type.group} answered ${status}: ${body.slice(0, 300)}`);
      return (JSON.parse(body) as { items: ApiObject[] }).items.map((object): Held => ({ type, object }));
    }),
  );
  return new Map(lists.flat().map((held) => [keyOf(held.type, held.object), held]));
}

/** What kube-controller-manager makes in every namespace: it runs once these are there. */
const ofEveryNamespace = [
  ['configmaps', 'kube-root-ca.crt'],
  ['serviceaccounts', 'default'],
] as const;

function isRun(state: State): boolean {
  const all = [...state.values()].filter(({ type }) => type.group === '' && type.plural === 'namespaces');
  return all.every(({ object }) =>
    ofEveryNamespace.every(([plural, name]) => state.has(`${plural}. ${object.metadata.name}/${name}`)),
  );
}

/**
 * Waits until kube-controller-manager runs and what components make at their start has come to rest: two equal readings, `restMs` apart. Rejects
 * after `withinMs`.
 */
export async function settledState(api: AdminApi, { restMs = 1_500, withinMs = 90_000 } = {}): Promise<State> {
  const deadline = performance.now() + withinMs;
  let before = await readState(api);
  for (;;) {
    await delay(isRun(before) ? restMs : 250);
    const now = await readState(api);
    const difference = differenceOf(before, now);
    if (isRun(before) && isEqual(difference)) return now;
    if (performance.now() > deadline) {
      const why = isRun(now) ? wordsOf(difference) : 'kube-controller-manager has not made what every namespace has';
      throw new Error(`the API server does not come to rest within ${withinMs / 1_000} s: ${why}`);
    }
    before = now;
  }
}

/** To delete more takes longer than to start another server, and API servers answer a deletion of thousands too late. */
const mostAdded = 500;

/** Rejects when the server does not hold exactly what `before` says within `withinMs`, and at once when it holds hundreds of objects more. */
export async function restoreState(api: AdminApi, before: State, { withinMs = 20_000 } = {}): Promise<void> {
  const deadline = performance.now() + withinMs;
  // What differed in the last look: a look at everything lists a hundred types, and many looks see the same few objects go.
  let suspects: readonly ServedType[] | undefined;
  for (;;) {
    const began = performance.now();
    // While a kind is being removed, its list may fail in several ways.
    const now = await readState(api, suspects).catch((error: Error) => error);
    const difference = now instanceof Error ? undefined : differenceOf(ofTypes(before, suspects), now);
    if (difference !== undefined && isEqual(difference)) {
      if (suspects === undefined) return;
      suspects = undefined;
      continue;
    }
    if (difference !== undefined && difference.added.length > mostAdded)
      throw new Error(`it holds ${difference.added.length} objects more than at first`);
    if (performance.now() > deadline) {
      const left = difference === undefined ? String(now) : wordsOf(difference);
      throw new Error(`after ${withinMs / 1_000} s, ${left}`);
    }
    if (now instanceof Error || difference === undefined) {
      suspects = undefined;
      await delay(100);
      continue;
    }
    suspects = typesOf(difference);
    const refused = (await Promise.all(stepsOf(before, difference).map((step) => take(api, step, now)))).filter(
      (done) => !done,
    );
    // Only what waits for components needs time, and they need a processor.
    await delay(Math.max(refused.length > 0 ? 100 : 20, performance.now() - began));
  }
}

const atOnce = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, propagationPolicy: 'Background' };

/** False when the server refused it; another look tells whether that matters. */
async function take(api: AdminApi, step: Step, now: State): Promise<boolean> {
  const { status } = await request(api, step, now);
  return status < 400;
}

function request(api: AdminApi, step: Step, now: State): Promise<Answer> {
  if (step.do === 'delete-collection') return api.call('DELETE', pathOf(step.type, step.namespace), atOnce);
  const { held } = step;
  const path = itemPath(held);
  if (step.do === 'delete') return api.call('DELETE', path, atOnce);
  if (step.do === 'strip-finalizers') return api.call('PATCH', path, { metadata: { finalizers: null } });
  const { type, object } = held;
  if (step.do === 'finalize-namespace') {
    const { metadata } = object;
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: metadata.name }, spec: { finalizers: [] } };
    return api.call('PUT', `${path}/finalize`, body);
  }
  const current = now.get(keyOf(type, object))?.object.metadata;
  const { uid, resourceVersion } = current ?? object.metadata;
  return api.call('PUT', path, {
    ...object,
    metadata: { ...object.metadata, uid, resourceVersion, managedFields: undefined },
  });
}
