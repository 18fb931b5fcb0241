/**
 * What a log line may say: a copy of its fields that JSON can hold and that names no secret. Agent, broker and node process all write through
 * it. A value is masked by the name of the member that holds it, at every depth. Cost is bounded: at most `limits.values` values are copied.
 */

/** The last word of a member's name, without case, `-` and `_`: `accessToken` and `JOIN_TOKEN` are tokens, `tokenFile` is a file. */
const secretWord = /(token|password|passphrase|privatekey|authorization|cookie|kubeconfig|secret|nonce|apikey)s?$/;

export const masked = '[redacted]';
const limits = { depth: 12, values: 2_000 } as const;
const cut = '[left out: too much for one log line]';

type Fields = Readonly<Record<string, unknown>>;

/** Errors get name, message, code, detail, stack and their chain of causes; maps become objects, sets lists, bytes their number. Never throws. */
export function loggable(fields: Fields): Record<string, unknown> {
  return copyOf(fields, { left: limits.values, above: [] }) as Record<string, unknown>;
}

interface Walk {
  /** Values that may still be copied. */
  left: number;
  /** The objects around the present value, outermost first. */
  readonly above: object[];
}

function copyOf(value: unknown, walk: Walk): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (walk.above.includes(value)) return '[circular]';
  if (walk.above.length >= limits.depth) return cut;
  walk.above.push(value);
  try {
    return contentOf(value, walk);
  } catch {
    return '[unreadable]';
  } finally {
    walk.above.pop();
  }
}

function contentOf(value: object, walk: Walk): unknown {
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return listOf(value, walk);
  if (value instanceof Set) return listOf(value, walk);
  if (value instanceof Map) return membersOf(value, walk);
  if (value instanceof Error) return membersOf(factsOf(value), walk);
  if ('toJSON' in value && typeof value.toJSON === 'function') return copyOf(value.toJSON(), walk);
  return membersOf(ownMembers(value), walk);
}

/** Without the list of all keys: an object may have more members than are ever copied. */
function* ownMembers(value: object): Generator<readonly [string, unknown]> {
  for (const key in value) if (Object.hasOwn(value, key)) yield [key, (value as Fields)[key]];
}

function listOf(items: Iterable<unknown>, walk: Walk): unknown[] {
  const copy: unknown[] = [];
  for (const item of items) {
    if (walk.left-- <= 0) {
      copy.push(cut);
      break;
    }
    copy.push(copyOf(item, walk));
  }
  return copy;
}

function membersOf(members: Iterable<readonly [unknown, unknown]>, walk: Walk): Record<string, unknown> {
  const copy: [string, unknown][] = [];
  for (const [key, member] of members) {
    if (walk.left-- <= 0) {
      copy.push(['…', cut]);
      break;
    }
    const name = String(key);
    if (member !== undefined) copy.push([name, isSecret(name) ? masked : copyOf(member, walk)]);
  }
  return Object.fromEntries(copy);
}

const isSecret = (name: string): boolean => secretWord.test(name.replaceAll(/[-_]/g, '').toLowerCase());

function* factsOf(error: Error): Generator<readonly [string, unknown]> {
  const { name, message, stack, cause } = error;
  const { code, detail, errors } = error as { code?: unknown; detail?: unknown; errors?: unknown };
  yield* Object.entries({ name, message, code, detail, stack, cause, errors });
}
