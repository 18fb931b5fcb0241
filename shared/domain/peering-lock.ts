/** Texts that the lock key of an administrator signs. No nonce, token or announcement begins like them. */
export const lockText = (of: {
  readonly tenant: string;
  readonly clusterId: string;
  readonly fingerprint: string;
}): string => `isthmus.dev/peering-lock\n${of.tenant}\n${of.clusterId}\n${of.fingerprint}`;
