/** The error codes that an operation can answer: those of its use case, and those that follow from how it is reached and what it takes. */
import * as z from 'zod';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import type { AnyRoute, Auth } from './runtime/route.ts';

/** Of the way to every operation; the first two also before its credentials are looked at. */
const always: readonly ErrorCode[] = ['malformed_request', 'too_large', 'internal', 'deadline_exceeded'];

const byAuth: Readonly<Record<Auth, readonly ErrorCode[]>> = {
  none: [],
  key: ['unauthenticated', 'forbidden', 'tenant_suspended', 'rate_limited'],
  // A member of a tenant is authenticated too, to be told that it is none.
  operator: ['unauthenticated', 'forbidden', 'tenant_suspended'],
  agent: [
    'unauthenticated',
    'signature_invalid',
    'request_expired',
    'request_replayed',
    'protocol_unsupported',
    'tenant_suspended',
    'rate_limited',
  ],
  enroll: ['unauthenticated', 'signature_invalid', 'request_expired', 'request_replayed', 'protocol_unsupported'],
};

const hasCursor = (query: z.ZodType | undefined): boolean => query instanceof z.ZodObject && 'cursor' in query.shape;

/** The store is read by every operation that knows its caller, and written by changes and for each signed request. */
function ofStore({ auth, method }: AnyRoute): readonly ErrorCode[] {
  if (auth === 'none') return [];
  const writes = method !== 'GET' || auth === 'agent';
  return ['store_busy', 'storage_unwritable', ...(writes ? (['storage_full', 'version_conflict'] as const) : [])];
}

function ofRepeats({ auth, method, answerHolds }: AnyRoute): readonly ErrorCode[] {
  if (method !== 'POST' || (auth !== 'key' && auth !== 'operator')) return [];
  return ['idempotency_mismatch', 'in_progress', ...(answerHolds === 'secret' ? (['already_exists'] as const) : [])];
}

/** In the order of `codes`, each once. */
export function refusalsOf(route: AnyRoute): readonly ErrorCode[] {
  const { auth, method, pathParameters, query, body, conditional, whileDeleting, refusals = [] } = route;
  const all = new Set<ErrorCode>([
    ...always,
    ...byAuth[auth],
    ...(auth === 'key' && method !== 'GET' && !whileDeleting ? (['tenant_deleting'] as const) : []),
    ...(pathParameters ? (['not_found'] as const) : []),
    ...(query || body ? (['invalid_input'] as const) : []),
    ...(hasCursor(query) ? (['cursor_unknown'] as const) : []),
    ...(body ? (['unsupported_media_type'] as const) : []),
    ...(conditional ? (['precondition_failed'] as const) : []),
    ...ofRepeats(route),
    ...ofStore(route),
    ...refusals,
  ]);
  return (Object.keys(codes) as ErrorCode[]).filter((code) => all.has(code));
}
