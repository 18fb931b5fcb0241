/** Identifiers and randomness as a dependency, so that histories can be replayed from a seed. */
export interface Ids {
  /** A new identifier, sortable by creation time within a process: `prefix` + `_` + 26 lower-case base32 characters. */
  next(prefix: string): string;
  /** Cryptographically strong bytes. */
  bytes(length: number): Uint8Array;
}
