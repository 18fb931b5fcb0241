/** Entries of the directory. */
import type { Resources } from './peering.ts';

export interface NewEntry {
  readonly cluster: string;
  readonly region?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Default `default`. */
  readonly classes?: readonly string[];
  /** A hint in the owner's words, not checked against the cluster. */
  readonly capacity?: Resources;
  readonly description?: string;
}

/** Exactly this is public. */
export interface DirectoryEntry {
  readonly tenant: string;
  readonly cluster: string;
  readonly region: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly classes: readonly string[];
  readonly capacity: Resources;
  readonly description: string;
  readonly publishedAt: number;
  readonly updatedAt: number;
}
