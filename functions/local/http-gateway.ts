/** The request listener of the local server: node:http in, API Gateway event to the function, its result out. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { APIGatewayProxyResultV2 } from 'aws-lambda';
import type { Composition } from '#functions/runtime/composition.ts';
import { problemResponse } from '#functions/runtime/problem.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Ids } from '#shared/ports/ids.ts';
import { fromGatewayResult, readBody, splitUrl, toGatewayEvent } from './gateway-event.ts';
import type { Router } from './gateway-router.ts';
import { invocationContext } from './invocation.ts';

/** Lambda's limit for a request payload. */
export const maxBodyBytes = 6 * 1024 * 1024;

export function createHttpGateway(composition: Composition, router: Router, ids: Ids): RequestListener {
  const answer = async (message: IncomingMessage, requestId: string): Promise<APIGatewayProxyResultV2> => {
    const method = message.method ?? 'GET';
    const url = message.url ?? '/';
    const { run, ...route } = router(method, splitUrl(url).rawPath);
    const body = await readBody(message, maxBodyBytes);
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
        sourceIp: message.socket.remoteAddress?.replace(/^::ffff:/, '') ?? '',
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
    answer(message, requestId)
      .catch((error: unknown) => {
        if (codeOf(error) === undefined) composition.log.error('request failed', error, { requestId });
        return problemResponse(error, requestId);
      })
      .then((result) => send(response, message, result))
      .catch((error: unknown) => {
        composition.log.error('sending a response failed', error, { requestId });
        response.destroy();
      });
  };
}

function send(response: ServerResponse, message: IncomingMessage, result: APIGatewayProxyResultV2): void {
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
  response.end(empty ? undefined : body);
}
