/** What an API key is: its record, its text form, when it counts. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Permission, Principal, Role } from '../access/caller.ts';
import { permissionNames, roleAllows, roleNames } from '../access/caller.ts';
import { newSecret, sha256Hex } from '../access/secrets.ts';
import type { ApiKeyView, NewApiKey } from '../model/api-key.ts';
import type { Op } from '../ports/store.ts';
import { key } from '../store/keys.ts';

export interface ApiKeyRecord extends ApiKeyView {
  readonly hash: string;
  /** The principal that made it. */
  readonly createdBy: string;
}

/** `isk_<tenant>_<id>_<secret>`: tenant and id find the record without looking into any other tenant. */
const form = /^isk_([a-z0-9]([-a-z0-9]*[a-z0-9])?)_([0-9a-z]{1,64})_([-\w]{43})$/;

const keyText = (tenant: string, id: string, secret: string): string => `isk_${tenant}_${idText(id)}_${secret}`;

const idText = (id: string): string => id.replace(/^ak_/, '');

export function parseKeyText(
  text: string,
): { readonly tenant: string; readonly id: string; readonly secret: string } | undefined {
  const match = text.length <= 256 ? form.exec(text) : null;
  if (!match) return undefined;
  const [, tenant = '', , id = '', secret = ''] = match;
  return { tenant, id: `ak_${id}`, secret };
}

const visiblePrefix = (tenant: string, id: string): string => `isk_${tenant}_${idText(id).slice(-8)}`;

/** A revoked key has an end too: rotation may leave the old one some time. */
export const isLive = (record: ApiKeyRecord, now: number): boolean =>
  (record.revokedAt === undefined || record.revokedAt > now) &&
  (record.expiresAt === undefined || record.expiresAt > now);

/** A new key and its text, which is nowhere else. */
export function buildKey(
  { clock, ids }: { readonly clock: Clock; readonly ids: Ids },
  tenant: string,
  maker: Pick<Principal, 'principal'>,
  { name, role, scopes, expiresInSeconds }: NewApiKey,
): { readonly record: ApiKeyRecord; readonly secret: string } {
  const id = ids.next('ak');
  const text = keyText(tenant, id, newSecret(ids));
  const now = clock.now();
  const record: ApiKeyRecord = {
    id,
    name,
    role,
    prefix: visiblePrefix(tenant, id),
    createdAt: now,
    createdBy: maker.principal,
    hash: sha256Hex(text),
    ...(scopes === undefined ? {} : { scopes }),
    ...(expiresInSeconds === undefined ? {} : { expiresAt: now + expiresInSeconds * 1_000 }),
  };
  return { record, secret: text };
}

export const putKey = (tenant: string, record: ApiKeyRecord): Op => ({
  op: 'put',
  ...key.apiKey(tenant, record.id),
  value: record,
});

export const viewOfKey = ({ hash: _hash, createdBy: _createdBy, ...view }: ApiKeyRecord): ApiKeyView => view;

const maxLifeSeconds = 10 * 365 * 86_400;

export function checkNewKey(input: NewApiKey): void {
  const refuse = (field: string, value: unknown, accepted: string): never => {
    throw new AppError('invalid_input', `${field} is ${JSON.stringify(value)}; accepted is ${accepted}`, {
      detail: { field, value, accepted },
    });
  };
  if (input.name.length < 1 || input.name.length > 100) refuse('name', input.name, '1 to 100 characters');
  if (!roleNames.includes(input.role)) refuse('role', input.role, roleNames.join(', '));
  const { expiresInSeconds: life, scopes } = input;
  if (life !== undefined && !(Number.isInteger(life) && life >= 60 && life <= maxLifeSeconds)) {
    refuse('expiresInSeconds', life, `60 to ${maxLifeSeconds}`);
  }
  if (scopes?.length === 0) refuse('scopes', scopes, 'at least one, or leave the field out');
  const unknown = scopes?.find((scope) => !permissionNames.includes(scope));
  if (unknown !== undefined) refuse('scopes', unknown, permissionNames.join(', '));
  const beyond = scopes?.find((scope) => !roleAllows(input.role, scope));
  if (beyond !== undefined) {
    const message = `scopes has ${beyond}, which role ${input.role} does not allow`;
    throw new AppError('fields_conflict', message, { detail: { field: 'scopes', value: beyond } });
  }
}

/**
 * No privilege escalation: a key grants access - by another key, as a member, through an identity provider - only to rights that it has itself,
 * and revokes only keys that have no others.
 */
export function mustNotExceed(
  maker: { readonly role: Role; readonly scopes?: readonly Permission[] },
  input: Pick<NewApiKey, 'role' | 'scopes'>,
): void {
  const { scopes } = maker;
  if (scopes === undefined) return;
  const wanted = input.scopes ?? permissionNames.filter((permission) => roleAllows(input.role, permission));
  const beyond = wanted.find((scope) => !scopes.includes(scope));
  if (beyond !== undefined) {
    throw new AppError(
      'forbidden',
      `a key scoped to ${scopes.join(', ')} can neither give nor take ${beyond}, which role ${input.role} has; use a key without scopes`,
      {
        detail: { scope: beyond, scopes },
      },
    );
  }
}
