/** Labels and changes of them. */

export type Labels = Readonly<Record<string, string>>;

export interface LabelChange {
  readonly labels: Labels;
  /** Refuses with `precondition_failed` when the record has another version. */
  readonly ifVersion?: number | undefined;
}
