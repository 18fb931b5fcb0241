/**
 * Between node:http and API Gateway's HTTP API payload format 2.0, both ways, so that the handlers cannot tell where they run.
 * Known difference: paths arrive percent-encoded in `rawPath` here as there; there is no stage, so `$default` is named.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { APIGatewayProxyEventV2, APIGatewayProxyResultV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';

export interface ReceivedRequest {
  readonly method: string;
  /** As on the request line: path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly sourceIp: string;
  readonly body: Buffer;
  readonly requestId: string;
  readonly receivedAt: number;
}

/** What the gateway's router found: `GET /v1/clusters/{name}` and the parameters, still percent-encoded as API Gateway leaves them. */
export interface MatchedRoute {
  readonly routeKey: string;
  readonly pathParameters: Readonly<Record<string, string>>;
}

const textual = /^(text\/|application\/(json|xml|javascript|x-www-form-urlencoded|[\w.-]+\+(json|xml))\b)/i;

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
};

/** Repeated keys are joined by a comma, in order; values are decoded. */
function queryParameters(rawQuery: string): Record<string, string> | undefined {
  if (rawQuery === '') return undefined;
  const parameters = new Map<string, string>();
  for (const pair of rawQuery.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const key = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
    const before = parameters.get(key);
    parameters.set(key, before === undefined ? value : `${before},${value}`);
  }
  return Object.fromEntries(parameters);
}

/** Lower-case names, repeated headers joined by a comma; cookies travel in a list of their own. */
function flatHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name === 'cookie') continue;
    flat[name.toLowerCase()] = Array.isArray(value) ? value.join(',') : value;
  }
  return flat;
}

export function splitUrl(url: string): { readonly rawPath: string; readonly rawQueryString: string } {
  const mark = url.indexOf('?');
  return mark < 0
    ? { rawPath: url, rawQueryString: '' }
    : { rawPath: url.slice(0, mark), rawQueryString: url.slice(mark + 1) };
}

export function toGatewayEvent(request: ReceivedRequest, route: MatchedRoute): APIGatewayProxyEventV2 {
  const { rawPath, rawQueryString } = splitUrl(request.url);
  const headers = flatHeaders(request.headers);
  const queryStringParameters = queryParameters(rawQueryString);
  const cookies = request.headers.cookie?.split(/;\s*/).filter((cookie) => cookie !== '');
  // Bytes that are no UTF-8 would be changed by passing them as text.
  const asText = textual.test(headers['content-type'] ?? '') && isUtf8(request.body);
  return {
    version: '2.0',
    routeKey: route.routeKey,
    rawPath,
    rawQueryString,
    ...(cookies && cookies.length > 0 && { cookies }),
    headers,
    ...(queryStringParameters && { queryStringParameters }),
    ...(Object.keys(route.pathParameters).length > 0 && { pathParameters: { ...route.pathParameters } }),
    requestContext: {
      accountId: 'local',
      apiId: 'local',
      domainName: headers.host ?? '',
      domainPrefix: (headers.host ?? '').split('.')[0] ?? '',
      http: {
        method: request.method,
        path: rawPath,
        protocol: 'HTTP/1.1',
        sourceIp: request.sourceIp,
        userAgent: headers['user-agent'] ?? '',
      },
      requestId: request.requestId,
      routeKey: route.routeKey,
      stage: '$default',
      time: new Date(request.receivedAt).toISOString(),
      timeEpoch: request.receivedAt,
    },
    ...(request.body.length > 0 && { body: request.body.toString(asText ? 'utf8' : 'base64') }),
    isBase64Encoded: request.body.length > 0 && !asText,
  };
}

export interface HttpResponse {
  readonly statusCode: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
}

const isStructured = (result: unknown): result is APIGatewayProxyStructuredResultV2 =>
  typeof result === 'object' && result !== null && 'statusCode' in result;

/** A result without `statusCode` is a JSON body with status 200, as API Gateway infers it. */
export function fromGatewayResult(result: APIGatewayProxyResultV2 | undefined): HttpResponse {
  if (!isStructured(result)) {
    const body = typeof result === 'string' ? result : JSON.stringify(result ?? {});
    return { statusCode: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(body) };
  }
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(result.headers ?? {})) headers[name.toLowerCase()] = String(value);
  if (result.cookies && result.cookies.length > 0) headers['set-cookie'] = [...result.cookies];
  const isShared = String(headers['cache-control'] ?? '').startsWith('public');
  const body = (isShared ? shared : bytesOf)(result);
  return { statusCode: result.statusCode ?? 200, headers, body };
}

type Structured = APIGatewayProxyStructuredResultV2;
const bytesOf = ({ body = '', isBase64Encoded = false }: Structured): Buffer =>
  Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8');

let lastShared: { readonly text: string | undefined; readonly bytes: Buffer } | undefined;
/** What any cache may keep is the same for all clients, and those that read it slowly hold it once. */
function shared(result: Structured): Buffer {
  if (lastShared?.text !== result.body) lastShared = { text: result.body, bytes: bytesOf(result) };
  return lastShared?.bytes ?? bytesOf(result);
}

/**
 * Undefined when the client sent more than `limit` bytes: the caller answers 413 and closes. What came is kept in one piece: a client that sends
 * a byte at a time would make this process hold a hundred times as much in objects.
 */
export async function readBody(message: IncomingMessage, limit: number): Promise<Buffer | undefined> {
  let bytes: Buffer = Buffer.alloc(0);
  let length = 0;
  // The rest is left to be read: destroying the message would end the connection before its answer.
  for await (const chunk of message.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    if (length + chunk.length > limit) return undefined;
    if (length + chunk.length > bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * bytes.length, length + chunk.length));
      bytes.copy(larger, 0, 0, length);
      bytes = larger;
    }
    chunk.copy(bytes, length);
    length += chunk.length;
  }
  return bytes.subarray(0, length);
}
