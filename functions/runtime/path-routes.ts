/** Which route a request is for, as API Gateway finds it: literal segments win over parameters. */
import { AppError } from '#shared/errors/app-error.ts';

export interface PathRoute {
  readonly method: string;
  /** `/v1/clusters/{cluster}` */
  readonly path: string;
}

export interface FoundRoute<R extends PathRoute> {
  readonly route: R;
  readonly pathParameters: Readonly<Record<string, string>>;
}

const isParameter = (segment: string): boolean => segment.startsWith('{');

function parametersOf(segments: readonly string[], actual: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== actual.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [i, segment] of segments.entries()) {
    const value = actual[i] ?? '';
    if (isParameter(segment)) {
      if (value === '') return undefined;
      parameters[segment.slice(1, -1)] = value;
    } else if (segment !== value) return undefined;
  }
  return parameters;
}

/** Throws `not_found`, or `method_not_allowed` naming the methods that the path has. */
export function createPathRouter<R extends PathRoute>(
  routes: readonly R[],
  { headIsGet = false }: { readonly headIsGet?: boolean } = {},
): (method: string, rawPath: string) => FoundRoute<R> {
  const compiled = routes
    .map((route) => ({ route, segments: route.path.split('/') }))
    .sort((a, b) => a.segments.filter(isParameter).length - b.segments.filter(isParameter).length);
  return (method, rawPath) => {
    const actual = rawPath.split('/');
    let nearest: string | undefined;
    const others = new Set<string>();
    for (const { route, segments } of compiled) {
      const pathParameters = parametersOf(segments, actual);
      if (pathParameters === undefined) continue;
      if (route.method === (headIsGet && method === 'HEAD' ? 'GET' : method)) return { route, pathParameters };
      // Literal segments win here, too: only methods of the path that a client reads in the document.
      nearest ??= route.path;
      if (route.path !== nearest) continue;
      others.add(route.method);
      if (headIsGet && route.method === 'GET') others.add('HEAD');
    }
    if (others.size > 0) {
      const allow = [...others].sort().join(', ');
      throw new AppError('method_not_allowed', `there is no ${method} ${rawPath}; this path has ${allow}`, {
        detail: { allow },
      });
    }
    throw new AppError('not_found', `there is no ${method} ${rawPath}; GET /v1/openapi.json lists what there is`);
  };
}
