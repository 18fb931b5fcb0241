/** Authenticates the sender of a request: a member of a tenant by API key or identity provider, an operator, or an agent whose signature covers method, path and body. */
import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import type { AgentCaller, Caller, OperatorCaller, Origin } from '#control/access/caller.ts';
import type { Control } from '#control/control.ts';
import type { SignedRequest } from '#control/model/cluster.ts';
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

/** Names the tenant that a token of an identity provider is for; API keys name theirs themselves. */
const tenantHeader = 'isthmus-tenant';

/** Linear time for every header. */
function bearerOf(authorization: string | undefined): string {
  const token = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (token !== undefined) return token;
  throw new AppError(
    'unauthenticated',
    'the request needs the header authorization: Bearer followed by an API key or a token of an identity provider',
  );
}

const looksLikeJwt = (text: string): boolean => /^[-\w]+\.[-\w]+\.[-\w]+$/.test(text);
export const looksLikeOperatorKey = (text: string): boolean => text.startsWith('iso_');

export async function authenticateMember(
  control: Control,
  headers: Readonly<Record<string, string | undefined>>,
  origin: Origin,
): Promise<Caller> {
  const token = bearerOf(headers.authorization);
  if (looksLikeJwt(token)) return control.tenants.authenticateToken(headers[tenantHeader], token, origin);
  if (looksLikeOperatorKey(token)) {
    await control.tenants.operators.authenticate(token, origin);
    throw new AppError(
      'forbidden',
      'an operator key belongs to no tenant and reads nothing inside one; use an API key',
      {
        detail: { needed: 'member' },
      },
    );
  }
  return control.tenants.authenticate(token, origin);
}

/**
 * A member of a tenant hears of every tenant in a path that there is none, of its own and of others alike, and elsewhere that it is not
 * allowed.
 */
export async function authenticateOperator(
  control: Control,
  event: APIGatewayProxyEventV2,
  origin: Origin,
): Promise<OperatorCaller> {
  const token = bearerOf(event.headers.authorization);
  if (looksLikeOperatorKey(token)) return control.tenants.operators.authenticate(token, origin);
  await authenticateMember(control, event.headers, origin);
  const tenant = event.pathParameters?.tenant;
  if (tenant !== undefined) {
    throw new AppError('not_found', 'there is no such tenant for a member; GET /v1/tenant is the own one');
  }
  throw new AppError('forbidden', 'this is for the operator of the broker; use an operator key', {
    detail: { needed: 'deployment-operator' },
  });
}

export const authenticateAgent = (control: Control, signed: SignedRequest): Promise<AgentCaller> =>
  control.clusters.authenticateAgent(signed);
