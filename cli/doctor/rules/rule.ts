/** What every rule is given, and the small words that all of them use. Pure. */
import type { Finding } from '../causes.ts';
import type { ClusterFacts, DoctorFacts, Looked } from '../facts.ts';

/** One cluster that answered, with all that is known of the others. */
export interface View extends Looked {
  readonly facts: ClusterFacts;
  readonly all: DoctorFacts;
  /** The other cluster, when it was looked at and answered. */
  readonly other?: Looked & { readonly facts: ClusterFacts };
}

export type Rule = (view: View) => readonly Finding[];

/** `A, B, C and 4 more`. */
export const some = (names: readonly string[], most = 3): string =>
  `${names.slice(0, most).join(', ')}${names.length > most ? ` and ${names.length - most} more` : ''}`;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}
interface Conditioned {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined;
}

export const conditionOf = (object: Conditioned | undefined, type: string): Condition | undefined =>
  object?.status?.conditions?.find((condition) => condition.type === type);
export const isReady = (object: Conditioned | undefined): boolean => conditionOf(object, 'Ready')?.status === 'True';

interface Labelled {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}
export const labelOf = ({ metadata }: Labelled, key: string): string | undefined => metadata.labels?.[key];
export const nameOf = ({ metadata }: Labelled): string =>
  metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
