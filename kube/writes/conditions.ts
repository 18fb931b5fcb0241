/** Pure operations on `metav1.Condition` lists. A list that would not change comes back as the same array. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  /** CamelCase, for machines. */
  readonly reason: string;
  /** For people: what is missing, on which side, what to do. */
  readonly message: string;
  readonly lastTransitionTime: string;
  readonly observedGeneration?: number;
}

/** What a controller says; when it became so is worked out here. */
export type ConditionInput = Omit<Condition, 'lastTransitionTime'>;

/** The API server rejects fractions of seconds in neither form, but writes none itself. */
export const timestamp = (nowMs: number): string => `${new Date(nowMs).toISOString().slice(0, 19)}Z`;

export const findCondition = <C extends { readonly type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined => conditions?.find((condition) => condition.type === type);

/** Sets one condition. `lastTransitionTime` moves only when `status` does. */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  input: ConditionInput,
  nowMs: number,
): readonly Condition[] {
  const all = conditions ?? [];
  const known = findCondition(all, input.type);
  if (known !== undefined && says(known, input)) return all;
  const lastTransitionTime = known?.status === input.status ? known.lastTransitionTime : timestamp(nowMs);
  const next: Condition = { ...input, lastTransitionTime };
  return known === undefined ? [...all, next] : all.map((condition) => (condition === known ? next : condition));
}

export function removeCondition(conditions: readonly Condition[] | undefined, type: string): readonly Condition[] {
  const all = conditions ?? [];
  return all.some((condition) => condition.type === type) ? all.filter((condition) => condition.type !== type) : all;
}

const says = (known: Condition, input: ConditionInput): boolean =>
  known.status === input.status &&
  known.reason === input.reason &&
  known.message === input.message &&
  known.observedGeneration === input.observedGeneration;
