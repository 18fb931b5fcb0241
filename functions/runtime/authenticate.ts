/** Who sent a request: an API key's member of a tenant, or an agent whose signature covers method, path and body. */
import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import type { AgentCaller, Caller, Origin } from '#control/access/caller.ts';
import type { SignedRequest } from '#control/clusters/clusters.ts';
import type { Control } from '#control/control.ts';
import { AppError } from '#shared/errors/app-error.ts';

export const originOf = (event: APIGatewayProxyEventV2): Origin => ({
  from: event.requestContext.http.sourceIp,
  requestId: event.requestContext.requestId,
});

/** Must run before any middleware that replaces `event.body`. */
export const signedRequestOf = (event: APIGatewayProxyEventV2): SignedRequest => ({
  ...originOf(event),
  authorization: event.headers.authorization,
  method: event.requestContext.http.method,
  path: event.rawPath,
  body: Buffer.from(event.body ?? '', event.isBase64Encoded ? 'base64' : 'utf8'),
});

export async function authenticateKey(
  control: Control,
  authorization: string | undefined,
  origin: Origin,
): Promise<Caller> {
  const secret = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (secret === undefined) {
    throw new AppError('unauthenticated', 'the request needs the header authorization: Bearer API-KEY');
  }
  return control.tenants.authenticate(secret, origin);
}

export const authenticateAgent = (control: Control, signed: SignedRequest): Promise<AgentCaller> =>
  control.clusters.authenticateAgent(signed);
