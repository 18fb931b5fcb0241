/** What the lock key of an administrator signs. No nonce, token or announcement begins like it. */
export interface Locked {
  readonly tenant: string;
  readonly clusterId: string;
  readonly fingerprint: string;
  /** Milliseconds since the epoch: of two keys that were signed for one cluster, the later counts. */
  readonly at: number;
}

export const lockText = ({ tenant, clusterId, fingerprint, at }: Locked): string =>
  `isthmus.dev/peering-lock\n${tenant}\n${clusterId}\n${fingerprint}\n${at}`;
