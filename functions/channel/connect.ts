/** WebSocket $connect: an agent opens its notify socket, signing the request as any other, or a portal listens, with its API key. */
import { mustHave, type Origin } from '#control/access/caller.ts';
import { type Composition, compositionOf } from '#functions/runtime/composition.ts';
import { appErrorOf, problemResponse } from '#functions/runtime/problem.ts';
import { requestMessage } from '#functions/runtime/request-log.ts';
import { codes } from '#shared/errors/codes.ts';
import { type SocketFunction, socketPath } from './socket.ts';

interface Opening extends Origin {
  readonly connectionId: string;
  readonly authorization: string | undefined;
  /** Called as soon as the caller is known, for the log. */
  readonly know: (caller: { readonly tenant: string; readonly principal: string }) => void;
}

/** Agents sign tokens, which begin otherwise. */
const keyIn = (authorization: string | undefined): string | undefined =>
  /^bearer +(is[ko]_\S*)$/i.exec(authorization ?? '')?.[1];

async function openForAgent({ control, connections }: Composition, opening: Opening): Promise<void> {
  const { connectionId, authorization, from, requestId, know } = opening;
  const agent = await control.clusters.authenticateAgent({
    from,
    requestId,
    authorization,
    method: 'GET',
    path: socketPath,
    body: new Uint8Array(),
  });
  know(agent);
  await control.tenants.mustServe(agent.tenant);
  await control.tenants.admit(agent.tenant, 'events');
  await connections.opened(connectionId, agent);
}

async function openForListener(
  { control, connections }: Composition,
  { connectionId, from, requestId, know }: Opening,
  key: string,
): Promise<void> {
  const caller = await control.tenants.authenticate(key, { from, requestId });
  know(caller);
  await control.tenants.admit(caller.tenant, 'requests');
  mustHave(caller, 'events:read');
  const listener = { tenant: caller.tenant, keyId: caller.principal.replace(/^api-key\//, '') };
  await connections.listens(connectionId, listener);
}

export const handler: SocketFunction = async (event, context) => {
  const composition = compositionOf(context);
  const { log } = composition;
  const { connectionId, requestId, ...rest } = event.requestContext;
  const { sourceIp } = (rest as { identity?: { sourceIp?: string } }).identity ?? {};
  const facts = { requestId, connectionId, route: '$connect', from: sourceIp };
  let known: { readonly tenant?: string; readonly principal?: string } = {};
  const authorization = event.headers?.authorization ?? event.headers?.Authorization;
  const opening: Opening = {
    connectionId,
    from: sourceIp ?? '',
    requestId,
    authorization,
    know: ({ tenant, principal }) => {
      known = { tenant, principal };
    },
  };
  try {
    const key = keyIn(authorization);
    await (key === undefined ? openForAgent(composition, opening) : openForListener(composition, opening, key));
    log.info(requestMessage, { ...facts, ...known, status: 200 });
    return { statusCode: 200 };
  } catch (error) {
    const { code } = appErrorOf(error);
    log.info(requestMessage, { ...facts, ...known, status: codes[code].http, code });
    return problemResponse(error, requestId);
  }
};
