/** What a request to the kubelet API means, and what the same wish is called at the provider's API server. Pure. */

type StreamVerb = 'exec' | 'attach' | 'portForward' | 'containerLogs';

export type UsagePage = 'summary' | 'resource' | 'cadvisor' | 'probes' | 'kubelet';

export type Route =
  | { readonly kind: 'healthz' }
  | { readonly kind: 'pods'; readonly running: boolean }
  | {
      readonly kind: 'stream';
      readonly verb: StreamVerb;
      readonly namespace: string;
      readonly pod: string;
      readonly container?: string;
      readonly query: URLSearchParams;
    }
  /** Usage of the offloaded pods: `summary` as JSON, the others as Prometheus text. */
  | { readonly kind: 'usage'; readonly page: UsagePage }
  | { readonly kind: 'unknown' };

const streamVerbs: Readonly<Record<string, { readonly methods: readonly string[]; readonly container: boolean }>> = {
  exec: { methods: ['GET', 'POST'], container: true },
  attach: { methods: ['GET', 'POST'], container: true },
  portForward: { methods: ['GET', 'POST'], container: false },
  containerLogs: { methods: ['GET'], container: true },
};

const usagePages: Readonly<Record<string, UsagePage>> = Object.assign(Object.create(null), {
  'stats/summary': 'summary',
  metrics: 'kubelet',
  'metrics/resource': 'resource',
  'metrics/cadvisor': 'cadvisor',
  'metrics/probes': 'probes',
});

/** `url` is path and query as received. Undefined method for a path that exists: `unknown`. */
export function routeOf(method: string, url: string): Route {
  const { pathname, searchParams } = new URL(url, 'https://kubelet');
  const segments = pathname.split('/').filter((segment) => segment !== '');
  const parts = segments.map(decoded);
  if (parts.includes(undefined)) return { kind: 'unknown' };
  const [first = '', namespace, pod, ...rest] = parts as string[];
  if (method === 'GET' && parts.length === 1) {
    if (first === 'healthz') return { kind: 'healthz' };
    if (first === 'pods' || first === 'runningpods') return { kind: 'pods', running: first === 'runningpods' };
  }
  const page = usagePages[parts.join('/')];
  if (method === 'GET' && page !== undefined) return { kind: 'usage', page };
  const verb = Object.hasOwn(streamVerbs, first) ? streamVerbs[first] : undefined;
  if (!verb?.methods.includes(method) || namespace === undefined || pod === undefined) return { kind: 'unknown' };
  // The kubelet also takes NAMESPACE/POD/UID/CONTAINER.
  const container = rest.at(-1);
  if (rest.length > 2 || verb.container !== (container !== undefined)) return { kind: 'unknown' };
  const base = { kind: 'stream', verb: first as StreamVerb, namespace, pod, query: searchParams } as const;
  return container === undefined ? base : { ...base, container };
}

/** Undefined: not a name that any object has, so it must not travel on inside a path. */
function decoded(segment: string): string | undefined {
  try {
    const name = decodeURIComponent(segment);
    return /^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$/.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The subresource of `nodes` that a caller needs rights for: first the fine one, then `proxy`, as the kubelet asks. */
export function subresourcesOf(url: string): readonly string[] {
  const [first] = new URL(url, 'https://kubelet').pathname.split('/').filter((segment) => segment !== '');
  switch (first) {
    case 'stats':
      return ['stats'];
    case 'metrics':
      return ['metrics'];
    case 'healthz':
      return ['healthz', 'proxy'];
    case 'pods':
    case 'runningpods':
      return ['pods', 'proxy'];
    default:
      return ['proxy'];
  }
}

const verbs: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};
/** The verb of the SubjectAccessReview. */
export const accessVerbOf = (method: string): string => verbs[method] ?? method.toLowerCase();

const subresource = { exec: 'exec', attach: 'attach', portForward: 'portforward', containerLogs: 'log' } as const;
const streams: Readonly<Record<string, string>> = { input: 'stdin', output: 'stdout', error: 'stderr', tty: 'tty' };
const logParameters: ReadonlySet<string> = new Set([
  'follow',
  'limitBytes',
  'previous',
  'sinceSeconds',
  'sinceTime',
  'stream',
  'tailLines',
  'timestamps',
]);

/** Only parameters that mean something there go along; a value of 0 is a value. */
function parametersOf(verb: StreamVerb, query: URLSearchParams): URLSearchParams {
  const out = new URLSearchParams();
  for (const [key, value] of query) {
    if (verb === 'containerLogs') {
      if (logParameters.has(key)) out.append(key, value);
    } else if (verb === 'portForward') {
      if (key === 'port' || key === 'ports') out.append('ports', value);
    } else if (Object.hasOwn(streams, key)) out.append(streams[key] ?? key, value === '1' ? 'true' : value);
    else if (key === 'command' && verb === 'exec') out.append(key, value);
  }
  return out;
}

/** Path and query at the provider's API server. */
export function providerPath(route: Extract<Route, { kind: 'stream' }>, remoteNamespace: string): string {
  const query = parametersOf(route.verb, route.query);
  if (route.container !== undefined) query.set('container', route.container);
  const text = query.toString();
  const path = `/api/v1/namespaces/${remoteNamespace}/pods/${route.pod}/${subresource[route.verb]}`;
  return text === '' ? path : `${path}?${text}`;
}
