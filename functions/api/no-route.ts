/** HTTP API $default: what no route matches. Says so as the rest of the API does, and as the local server does. */
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import httpFunctions from '#functions/http-functions.json' with { type: 'json' };
import { createPathRouter } from '#functions/runtime/path-routes.ts';
import { problemResponse } from '#functions/runtime/problem.ts';
import { AppError } from '#shared/errors/app-error.ts';

const find = createPathRouter(httpFunctions);

export const handler = async ({
  rawPath,
  requestContext,
}: APIGatewayProxyEventV2): Promise<APIGatewayProxyStructuredResultV2> => {
  const { requestId, http } = requestContext;
  try {
    find(http.method, rawPath);
    // The gateway splits paths as we do; where it does not, there is nothing behind this one.
    throw new AppError('not_found', `there is no ${http.method} ${rawPath}; GET /v1/openapi.json lists what there is`);
  } catch (error) {
    return problemResponse(error, requestId);
  }
};
