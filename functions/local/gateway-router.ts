/** Finds the function of a request as API Gateway does: literal segments win over parameters. */
import type { HttpFunction } from '#functions/runtime/http.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { MatchedRoute } from './gateway-event.ts';

export interface Match extends MatchedRoute {
  readonly run: HttpFunction;
}
export type Router = (method: string, rawPath: string) => Match;

interface Compiled {
  readonly run: HttpFunction;
  readonly segments: readonly string[];
}

const isParameter = (segment: string): boolean => segment.startsWith('{');

function parametersOf({ segments }: Compiled, actual: readonly string[]): Record<string, string> | undefined {
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
export function createRouter(functions: readonly HttpFunction[]): Router {
  const compiled: Compiled[] = functions
    .map((run) => ({ run, segments: run.route.path.split('/') }))
    .sort((a, b) => a.segments.filter(isParameter).length - b.segments.filter(isParameter).length);
  return (method, rawPath) => {
    const actual = rawPath.split('/');
    const others = new Set<string>();
    for (const candidate of compiled) {
      const pathParameters = parametersOf(candidate, actual);
      if (pathParameters === undefined) continue;
      const { route } = candidate.run;
      if (route.method === method) {
        return { run: candidate.run, routeKey: `${route.method} ${route.path}`, pathParameters };
      }
      others.add(route.method);
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
