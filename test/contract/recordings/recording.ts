/** The form of a recorded session, and when one answer says at least what another says. */

/** In the order in which it happened. Cluster IDs are as in the session; secrets and keys are left out. */
export type Entry =
  /** What a person did at the broker. */
  | { readonly at: 'person'; readonly does: 'peer' | 'unpeer'; readonly peering: string }
  | {
      readonly at: 'http';
      readonly cluster: string;
      readonly method: 'GET' | 'POST';
      readonly path: string;
      readonly body?: unknown;
      readonly status: number;
      readonly answer: unknown;
    }
  | { readonly at: 'open' | 'closed'; readonly cluster: string }
  | { readonly at: 'frame'; readonly cluster: string; readonly from: 'agent' | 'broker'; readonly frame: unknown };

export interface Recording {
  /** Of agent and broker, which were of one version. */
  readonly protocol: number;
  readonly commit: string;
  /** Consumer and provider. */
  readonly clusters: readonly [string, string];
  readonly entries: readonly Entry[];
}

const kindOf = (value: unknown): string => (Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value);

/**
 * Where `actual` lacks something that `recorded` has: a member, or one of another type. Members more are fine, values may differ. Elements of
 * arrays that name a kind are compared with those of the same kind.
 */
export function lacking(recorded: unknown, actual: unknown, at = ''): readonly string[] {
  if (kindOf(recorded) !== kindOf(actual)) return [`${at || 'it'} is ${kindOf(actual)}, was ${kindOf(recorded)}`];
  if (Array.isArray(recorded) && Array.isArray(actual)) {
    return recorded.flatMap((element: unknown, i) => {
      const { kind } = (element ?? {}) as { readonly kind?: unknown };
      if (typeof kind !== 'string')
        return actual.length === 0 ? [] : lacking(element, actual[Math.min(i, actual.length - 1)], `${at}[${i}]`);
      const same = actual.find((other: { readonly kind?: unknown }) => other.kind === kind);
      return same === undefined ? [`${at} has no ${kind}`] : lacking(element, same, `${at}[${kind}]`);
    });
  }
  if (kindOf(recorded) !== 'object') return [];
  return Object.entries(recorded as object).flatMap(([name, value]) => {
    const other = (actual as Record<string, unknown>)[name];
    return other === undefined ? [`${at}.${name} is missing`] : lacking(value, other, `${at}.${name}`);
  });
}
