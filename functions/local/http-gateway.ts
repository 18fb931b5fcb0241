/** The request listener of the local server: node:http in, API Gateway event to the function, its result out. */
import { type IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { APIGatewayProxyResultV2 } from 'aws-lambda';
import type { Composition } from '#functions/runtime/composition.ts';
import { appErrorOf, problemResponse } from '#functions/runtime/problem.ts';
import { requestMessage } from '#functions/runtime/request-log.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { codes } from '#shared/errors/codes.ts';
import type { Ids } from '#shared/ports/ids.ts';
import { sendInPieces } from './answer-pieces.ts';
import { fromGatewayResult, readBody, splitUrl, toGatewayEvent } from './gateway-event.ts';
import type { Router } from './gateway-router.ts';
import { invocationContext } from './invocation.ts';
import { createKnownCallers } from './known-callers.ts';
import { type Proxies, trustProxies } from './proxies.ts';
import { createStartTurns, type StartTurns, turnOf, turnOfAddress } from './start-turns.ts';

/** Lambda's limit for a request payload. */
export const maxBodyBytes = 6 * 1024 * 1024;

/** Without proxies, the client is the other end of the connection. */
const noProxies = trustProxies([]);

/** Told of each answer; `route` is empty where there is none. */
export type OnAnswer = (route: string, status: number, seconds: number) => void;

export interface HttpGatewayOptions {
  readonly proxies?: Proxies;
  readonly onAnswer?: OnAnswer;
  /** Default: turns of its own. */
  readonly turns?: StartTurns;
}

/** Requests begin in turns over the tenants of credentials that were found good before; all others in turns over their addresses. */
export function createHttpGateway(
  given: Composition,
  router: Router,
  ids: Ids,
  { proxies = noProxies, onAnswer = () => undefined, turns = createStartTurns() }: HttpGatewayOptions = {},
): RequestListener {
  const callers = createKnownCallers();
  const composition: Composition = { ...given, onMember: callers.onMember };
  const answer = async (
    message: IncomingMessage,
    { requestId, from }: { readonly requestId: string; readonly from: string },
    isRoute: (routeKey: string) => void,
  ): Promise<APIGatewayProxyResultV2 | undefined> => {
    const tenant = callers.tenantOf(message.headers.authorization);
    const owner = tenant === undefined ? turnOfAddress(from) : turnOf(tenant);
    await turns.take(owner);
    // Its client has left, so that reading its body would fail, and be logged as a defect.
    if (message.socket.destroyed) return undefined;
    const method = message.method ?? 'GET';
    const url = message.url ?? '/';
    mustHaveOneHost(message);
    const { run, ...route } = router(method, splitUrl(url).rawPath);
    isRoute(route.routeKey);
    const isWhole = message.complete;
    const body = await readBody(message, maxBodyBytes);
    // What came later begins only now.
    if (!isWhole) await turns.take(owner);
    if (body === undefined) {
      throw new AppError('too_large', `the body is larger than ${maxBodyBytes} bytes, which is the limit`, {
        detail: { limit: maxBodyBytes },
      });
    }
    const event = toGatewayEvent(
      {
        method,
        url,
        headers: message.headers,
        sourceIp: from,
        body,
        requestId,
        receivedAt: composition.clock.now(),
      },
      route,
    );
    return run(event, invocationContext(composition, route.routeKey, requestId));
  };

  return (message, response) => {
    const requestId = ids.next('req');
    const startedAt = composition.clock.now();
    // While the connection is there: a client may be gone before its request is refused.
    const from = proxies.clientOf(message);
    let routeKey = '';
    answer(message, { requestId, from }, (found) => {
      routeKey = found;
    })
      .catch((error: unknown) => {
        if (codeOf(error) === undefined) composition.log.error('request failed', error, { requestId });
        const { code } = appErrorOf(error);
        // No function saw it, hence none logged it. The path may be anything: it stays out.
        const facts = { requestId, route: routeKey, from, status: codes[code].http, code };
        composition.log.info(requestMessage, facts);
        return problemResponse(error, requestId);
      })
      .then((result) => {
        if (result === undefined) return;
        sendResult(response, message, result);
        onAnswer(routeKey, response.statusCode, (composition.clock.now() - startedAt) / 1_000);
      })
      .catch((error: unknown) => {
        composition.log.error('sending a response failed', error, { requestId });
        response.destroy();
      });
  };
}

/** Of two, a proxy in front may have taken the other one. node:http takes the first, and refuses a request without any. */
function mustHaveOneHost({ rawHeaders }: IncomingMessage): void {
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts <= 1) return;
  throw new AppError('malformed_request', `the header host is there ${hosts} times, accepted is once`, {
    detail: { field: 'host' },
  });
}

/** For the client to read what it was told. */
const lingerMs = 2_000;
/** For the client to send the rest of a body that was refused. */
const restMs = 10_000;

/** What node:http itself refuses: headers beyond 16 KiB, and what is no HTTP. Nothing of it is logged or repeated. */
export function answerBrokenRequest(error: Error & { readonly code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const large = error.code === 'HPE_HEADER_OVERFLOW';
  const problem = large
    ? new AppError('headers_too_large', 'the request line and headers have more than 16384 bytes, which is the limit')
    : new AppError('malformed_request', 'the request is not valid HTTP');
  const { statusCode, headers, body = '' } = problemResponse(problem, '');
  const fields = { ...headers, connection: 'close', 'content-length': Buffer.byteLength(body) };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  // A client that keeps its half open would keep the descriptor.
  const linger = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once('close', () => clearTimeout(linger));
  socket.end(`HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode ?? 400]}\r\n${lines.join('')}\r\n${body}`);
}

export function sendResult(response: ServerResponse, message: IncomingMessage, result: APIGatewayProxyResultV2): void {
  if (response.destroyed) return;
  const { statusCode, headers, body } = fromGatewayResult(result);
  // A body that was not read to its end would be taken for the next request.
  const unread = !message.complete;
  const empty = statusCode === 204 || statusCode === 304;
  response.writeHead(statusCode, {
    ...headers,
    ...(!empty && { 'content-length': body.length }),
    ...(unread && { connection: 'close' }),
  });
  const payload = empty || message.method === 'HEAD' ? Buffer.alloc(0) : body;
  if (!unread) {
    sendInPieces(response, payload);
    return;
  }
  // A socket that is closed with unread bytes resets the connection, and a client that still writes may never read its answer.
  response.flushHeaders();
  if (payload.length > 0) response.write(payload);
  const end = (): void => {
    clearTimeout(deadline);
    response.end();
  };
  const deadline = setTimeout(end, restMs).unref();
  message.once('end', end).once('close', end).resume();
}
