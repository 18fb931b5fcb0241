/** Invitations: records and redemptions. */
import type { Resources } from './peering.ts';

export interface Redemption {
  readonly peering: string;
  readonly tenant: string;
  readonly cluster: string;
  readonly at: number;
}

export interface InvitationRecord {
  readonly id: string;
  readonly cluster: string;
  readonly limits: Resources;
  readonly classes: readonly string[];
  readonly uses: number;
  readonly note: string;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly expiresAt: number;
  readonly revokedAt?: number;
  readonly redemptions: readonly Redemption[];
  readonly hash: string;
}
