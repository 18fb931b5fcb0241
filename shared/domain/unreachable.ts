/** Makes a switch exhaustive by compilation; throws when a value from outside slipped through. */
export function unreachable(value: never): never {
  throw new TypeError(`unhandled case: ${JSON.stringify(value)}`);
}
