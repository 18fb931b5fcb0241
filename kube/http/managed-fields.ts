/**
 * Cuts `managedFields` out of JSON text before it is parsed: half of what an API server sends, unused here, and costly to parse, since all its keys
 * differ.
 */
const key = '"managedFields":[';
const quote = 0x22;
const backslash = 0x5c;
const opening = 0x5b;
const closing = 0x5d;
const comma = ',';

/**
 * The same JSON without any `managedFields` that is an array. Text that is spaced otherwise than API servers do, or is no JSON, comes back
 * as it is, as do texts within strings that look alike.
 */
export function withoutManagedFields(text: string): string {
  let kept = '';
  let from = 0;
  for (let at = text.indexOf(key); at >= 0; ) {
    const before = text[at - 1];
    // A quote that neither opens an object nor follows a comma stands in a string, behind a backslash.
    const isKey = before === '{' || before === comma;
    const end = isKey ? endOfArray(text, at + key.length) : at + key.length;
    if (end === undefined) return text;
    if (isKey) {
      const follows = text[end] === comma;
      kept += text.slice(from, before === comma ? at - 1 : at);
      from = before !== comma && follows ? end + 1 : end;
    }
    at = text.indexOf(key, end);
  }
  return from === 0 ? text : kept + text.slice(from);
}

/** Behind the bracket that closes the array in which `from` is. */
function endOfArray(text: string, from: number): number | undefined {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      for (at++; at < text.length && text.charCodeAt(at) !== quote; at++) if (text.charCodeAt(at) === backslash) at++;
    } else if (code === opening) depth++;
    else if (code === closing && --depth === 0) return at + 1;
  }
  return undefined;
}
