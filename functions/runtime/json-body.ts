/**
 * A request body as JSON, or a clear refusal: wrong type, too large, not UTF-8, not JSON, nested so deep that what reads it would overflow, a
 * name twice in one object (of which two readers may take different ones).
 */
import type { APIGatewayProxyEventV2 } from 'aws-lambda';
import { AppError } from '#shared/errors/app-error.ts';

export const maxDepth = 64;

const jsonType = /^application\/(?:[\w.!#$&^+-]{1,64}\+)?json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?;?\s*$/i;

const malformed = (message: string, detail: Readonly<Record<string, unknown>> = {}): AppError =>
  new AppError('malformed_request', message, { detail });

export function jsonBodyOf(
  event: Pick<APIGatewayProxyEventV2, 'headers' | 'body' | 'isBase64Encoded'>,
  maxBytes: number,
): unknown {
  const type = event.headers['content-type'];
  if (type === undefined || !jsonType.test(type)) {
    throw new AppError(
      'unsupported_media_type',
      `the header content-type is ${type === undefined ? 'missing' : JSON.stringify(type.slice(0, 100))}, accepted is application/json, in UTF-8`,
      { detail: { field: 'content-type' } },
    );
  }
  const text = textOf(event, maxBytes);
  checkStructure(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed('the body is not valid JSON');
  }
  return value;
}

function textOf(
  { body = '', isBase64Encoded }: Pick<APIGatewayProxyEventV2, 'body' | 'isBase64Encoded'>,
  maxBytes: number,
): string {
  // Base64 is a third longer; a string holds at most three bytes for each of its units.
  const bytes = isBase64Encoded ? Buffer.from(body, 'base64') : undefined;
  const length = bytes?.length ?? Buffer.byteLength(body);
  if (length > maxBytes) {
    throw new AppError('too_large', `the body has ${length} bytes, the limit of this route is ${maxBytes}`, {
      detail: { limit: maxBytes },
    });
  }
  if (bytes === undefined) return body;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw malformed('the body is not valid UTF-8');
  }
}

/** One pass, no recursion. Whether it is JSON at all is for the parser to say. */
function checkStructure(text: string): void {
  const open: (Set<string> | undefined)[] = [];
  /** In an object: the next string is a name. */
  let nameNext = false;
  for (let i = 0; i < text.length; i += 1) {
    switch (text.charCodeAt(i)) {
      case 0x7b: // {
      case 0x5b: // [
        if (open.length >= maxDepth)
          throw malformed(`the body is nested deeper than ${maxDepth} levels`, { limit: maxDepth });
        nameNext = text[i] === '{';
        open.push(nameNext ? new Set() : undefined);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        open.pop();
        nameNext = false;
        break;
      case 0x2c: // ,
        nameNext = open.at(-1) !== undefined;
        break;
      case 0x22: {
        // "
        const end = endOfString(text, i);
        const names = open.at(-1);
        if (nameNext && names) noteName(names, text.slice(i, end + 1));
        nameNext = false;
        i = end;
        break;
      }
    }
  }
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === 0x22) return i;
    if (code === 0x5c) i += 1;
  }
  throw malformed('the body is not valid JSON');
}

function noteName(names: Set<string>, quoted: string): void {
  let name: unknown;
  try {
    name = JSON.parse(quoted);
  } catch {
    throw malformed('the body is not valid JSON');
  }
  if (typeof name !== 'string') return;
  const shown = JSON.stringify(name.slice(0, 100));
  if (names.has(name))
    throw malformed(`the body has the name ${shown} twice in one object`, { field: name.slice(0, 100) });
  if (name === '__proto__') throw malformed(`the body has the name ${shown}, which is not accepted`, { field: name });
  names.add(name);
}
