/** API keys as they are shown and made. */
import type { Permission, Role } from '../access/caller.ts';

export interface ApiKeyView {
  readonly id: string;
  readonly name: string;
  /** The beginning of the key, so that people recognise it. */
  readonly prefix: string;
  readonly role: Role;
  readonly scopes?: readonly Permission[];
  readonly createdAt: number;
  readonly expiresAt?: number;
  /** From then on it is refused; in the future while a rotated key overlaps its successor. */
  readonly revokedAt?: number;
  /** The key that replaced this one. */
  readonly replacedBy?: string;
  /** Within an hour. */
  readonly lastUsedAt?: number;
}

export interface NewApiKey {
  readonly name: string;
  readonly role: Role;
  readonly scopes?: readonly Permission[];
  readonly expiresInSeconds?: number;
}
