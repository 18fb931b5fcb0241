/** POST under an Idempotency-Key: the work runs once, a repeat gets the same answer. */
import { createHash } from 'node:crypto';
import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import type { Caller, Repeat } from '#control/access/caller.ts';
import type { Control } from '#control/control.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { AnyPrincipal, AnyRoute, Reply } from './route.ts';

interface Attempt {
  readonly route: Pick<AnyRoute, 'method' | 'path' | 'answerHolds'>;
  readonly event: APIGatewayProxyEventV2;
  readonly principal: AnyPrincipal;
  readonly control: Control;
  readonly signal: AbortSignal;
  readonly body: unknown;
}

/** `work` gets what tells the use case that the request may have come before; without it, it may not. */
export async function runOnce(attempt: Attempt, work: (repeat?: Repeat) => Promise<Reply>): Promise<Reply> {
  const { route, event, principal, control, signal, body } = attempt;
  const key = event.headers['idempotency-key'];
  const who = rememberedAs(principal);
  if (route.method !== 'POST' || key === undefined || who === undefined) return work();
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new AppError(
      'malformed_request',
      `the header idempotency-key is ${JSON.stringify(key)}, accepted are 1 to 255 printable ASCII characters without blanks`,
      { detail: { field: 'idempotency-key', value: key } },
    );
  }
  // The query is not part of it: `?wait=` may differ between attempts at the same change.
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([route.method, event.rawPath, body ?? null]))
    .digest('hex');
  const {
    status,
    body: answer,
    replayed,
  } = await control.idempotency.once(
    who,
    {
      key,
      fingerprint,
      ...(route.answerHolds === 'secret' && { credentials: event.headers.authorization ?? '' }),
    },
    async (repeat) => {
      const reply = await work(repeat);
      return { status: reply.status ?? 200, body: reply.body ?? null };
    },
    signal,
  );
  return {
    status,
    ...(answer !== null && { body: answer }),
    ...(replayed && { headers: { 'idempotency-replayed': 'true' } }),
  };
}

/** No tenant can be called `system`: what operators repeat is remembered there. */
const rememberedAs = ({ caller, operator }: AnyPrincipal): Caller | undefined =>
  caller ?? (operator && { ...operator, tenant: 'system', role: 'admin' });
