/** What the former key of a cluster signs to hand over to another one. No nonce has a line end, and no token does. */
export const keySuccessionText = (fingerprint: string): string => `isthmus.dev/key-succession\n${fingerprint}`;
