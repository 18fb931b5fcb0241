/** Finds the function of a request as API Gateway does; HEAD, which API Gateway does not know, is GET whose body is not sent. */
import type { HttpFunction } from '#functions/runtime/http.ts';
import { createPathRouter } from '#functions/runtime/path-routes.ts';
import type { MatchedRoute } from './gateway-event.ts';

interface Match extends MatchedRoute {
  readonly run: HttpFunction;
}
export type Router = (method: string, rawPath: string) => Match;

/** Throws `not_found`, or `method_not_allowed` naming the methods that the path has. */
export function createRouter(functions: readonly HttpFunction[]): Router {
  const find = createPathRouter(
    functions.map((run) => ({ run, method: run.route.method, path: run.route.path })),
    { headIsGet: true },
  );
  return (method, rawPath) => {
    const { route, pathParameters } = find(method, rawPath);
    return { run: route.run, routeKey: `${route.method} ${route.path}`, pathParameters };
  };
}
