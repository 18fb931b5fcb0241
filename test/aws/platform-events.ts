/** Events as the platform sends them: samples in the shape that AWS documents, with what a test needs filled in. */
import httpApi from './samples/http-api.json' with { type: 'json' };
import scheduled from './samples/scheduled.json' with { type: 'json' };
import connect from './samples/websocket-connect.json' with { type: 'json' };
import disconnect from './samples/websocket-disconnect.json' with { type: 'json' };
import message from './samples/websocket-message.json' with { type: 'json' };

export interface HttpCall {
  readonly method: string;
  readonly path: string;
  /** As the gateway's router found it; default: the path itself. */
  readonly route?: string;
  readonly pathParameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly authorization?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function httpEvent(call: HttpCall): unknown {
  const { method, path, route = path, pathParameters, query, authorization, body, headers } = call;
  const { body: _, ...sample } = httpApi;
  const routeKey = `${method} ${route}`;
  return {
    ...sample,
    routeKey,
    rawPath: path,
    rawQueryString: new URLSearchParams(query).toString(),
    headers: { ...sample.headers, ...(authorization && { authorization }), ...headers },
    ...(query && { queryStringParameters: query }),
    ...(pathParameters && { pathParameters }),
    requestContext: {
      ...sample.requestContext,
      http: { ...sample.requestContext.http, method, path },
      routeKey,
      timeEpoch: Date.now(),
    },
    ...(body !== undefined && { body }),
  };
}

const on = <E extends { readonly requestContext: object }>(event: E, connectionId: string) => ({
  ...event,
  requestContext: { ...event.requestContext, connectionId },
});

export const connectEvent = (connectionId: string, authorization: string): unknown => {
  const event = on(connect, connectionId);
  return { ...event, headers: { ...event.headers, Authorization: authorization } };
};
export const messageEvent = (connectionId: string, body: string): unknown => ({ ...on(message, connectionId), body });
export const disconnectEvent = (connectionId: string): unknown => on(disconnect, connectionId);
export const scheduledEvent: unknown = scheduled;
