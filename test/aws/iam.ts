/**
 * Evaluates policies of roles as IAM does, as far as ours go: statements that allow, by action, resource and conditions on the partition keys of a
 * request. A condition that it does not know throws, so that no policy is taken for narrower than it is.
 */

export interface PolicyStatement {
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  /** Operator, then key, then values. */
  readonly conditions: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface AccessRequest {
  /** `dynamodb:GetItem`. */
  readonly action: string;
  readonly resource: string;
  /** By condition key, each of any number of values; a key without values is absent. */
  readonly context: Readonly<Record<string, readonly string[]>>;
}

const like = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '[^]*')
      .replaceAll('?', '.')}$`,
  );

const valuesOf = (given: unknown): readonly string[] => (Array.isArray(given) ? given.map(String) : [String(given)]);

/** Undefined: a variable of the pattern has no value, and a pattern with it matches nothing. */
function filledIn(pattern: string, { context }: AccessRequest): string | undefined {
  let missing = false;
  const text = pattern.replaceAll(/\$\{([^}]+)\}/g, (_, name: string) => {
    const [value] = context[name] ?? [];
    missing ||= value === undefined;
    return value ?? '';
  });
  return missing ? undefined : text;
}

function holds(operator: string, key: string, given: unknown, request: AccessRequest): boolean {
  const found = request.context[key] ?? [];
  const patterns = valuesOf(given).flatMap((pattern) => filledIn(pattern, request) ?? []);
  const matches = (value: string): boolean => patterns.some((pattern) => like(pattern).test(value));
  switch (operator) {
    // True for no values at all, as at AWS: hence the condition Null beside it.
    case 'ForAllValues:StringLike':
      return found.every(matches);
    case 'ForAllValues:StringNotLike':
      return found.every((value) => !matches(value));
    case 'Null':
      return (found.length === 0) === (String(given) === 'true');
    default:
      throw new Error(`condition ${operator} is not known to this evaluator`);
  }
}

export const isAllowed = (policy: readonly PolicyStatement[], request: AccessRequest): boolean =>
  policy.some(
    ({ actions, resources, conditions }) =>
      actions.includes(request.action) &&
      resources.some((resource) => like(resource).test(request.resource)) &&
      Object.entries(conditions).every(([operator, keys]) =>
        Object.entries(keys).every(([key, given]) => holds(operator, key, given, request)),
      ),
  );
