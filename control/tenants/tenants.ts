/** Tenants and their API keys: made, rotated, revoked, checked. Only hashes are stored. */
import type { Caller, Origin, Permission, Role } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';
import type { Page } from '../ports/store.ts';

export interface ApiKeyView {
  readonly id: string;
  readonly name: string;
  /** The beginning of the key, so that people recognise it. */
  readonly prefix: string;
  readonly role: Role;
  readonly scopes?: readonly Permission[];
  readonly createdAt: number;
  readonly expiresAt?: number;
  readonly revokedAt?: number;
  /** The key that replaced this one. */
  readonly replacedBy?: string;
}

export interface NewApiKey {
  readonly name: string;
  readonly role: Role;
  readonly scopes?: readonly Permission[];
  readonly expiresInSeconds?: number;
}

/** `secret` is shown once and stored nowhere. */
export interface IssuedKey {
  readonly key: ApiKeyView;
  readonly secret: string;
}

export interface Tenants {
  /** Makes tenant `name` and its first admin key; when the tenant exists, does nothing and returns no secret. For local mode. */
  bootstrap(name: string, origin: Origin, signal?: AbortSignal): Promise<IssuedKey | undefined>;
  createKey(caller: Caller, input: NewApiKey, signal?: AbortSignal): Promise<IssuedKey>;
  /** A new secret with the same rights; the old key keeps working for `overlapSeconds` (default 0). */
  rotateKey(caller: Caller, id: string, overlapSeconds?: number, signal?: AbortSignal): Promise<IssuedKey>;
  revokeKey(caller: Caller, id: string, signal?: AbortSignal): Promise<ApiKeyView>;
  listKeys(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<ApiKeyView>>;
  /** `unauthenticated` when the key is unknown, revoked or expired, with the same words for each. */
  authenticate(secret: string, origin: Origin, signal?: AbortSignal): Promise<Caller>;
}

export function createTenants(_deps: ControlDeps): Tenants {
  throw new Error('bodies follow');
}
