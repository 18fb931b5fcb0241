/** The files of the console, as vite built them: read once, compressed, served with headers that let the page load nothing from elsewhere. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { sendInPieces } from './answer-pieces.ts';

interface ConsoleFile {
  readonly type: string;
  readonly content: Buffer;
  readonly compressed: Buffer;
  readonly etag: string;
  /** Its name has the hash of its content. */
  readonly immutable: boolean;
}

/** By path: `/` is the page itself. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Sent with every file, as infra/rules/console-headers.ts has it for the hosted console. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

export async function readConsoleFiles(dir: string): Promise<ConsoleFiles> {
  const names = await readdir(dir, { recursive: true });
  const files = new Map<string, ConsoleFile>();
  for (const name of names) {
    const type = types[path.extname(name)];
    if (type === undefined) continue;
    const content = await readFile(path.join(dir, name));
    const at = `/${name.split(path.sep).join('/')}`;
    files.set(at === '/index.html' ? '/' : at, {
      type,
      content,
      compressed: await promisify(gzip)(content, { level: 9 }),
      etag: `"${createHash('sha256').update(content).digest('hex').slice(0, 32)}"`,
      immutable: at.startsWith('/assets/'),
    });
  }
  return files;
}

/** `provider`: an origin that the page may ask beside its own. */
export function sendFile(
  file: ConsoleFile,
  request: IncomingMessage,
  response: ServerResponse,
  provider?: string,
): void {
  const policy = securityHeaders['content-security-policy'] ?? '';
  const headers = {
    ...securityHeaders,
    ...(provider !== undefined && {
      'content-security-policy': policy.replace("connect-src 'self'", `connect-src 'self' ${provider}`),
    }),
    'content-type': file.type,
    'cache-control': file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: file.etag,
    vary: 'accept-encoding',
  };
  if (request.headers['if-none-match'] === file.etag) {
    response.writeHead(304, headers).end();
    return;
  }
  const small = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
  const body = small ? file.compressed : file.content;
  response.writeHead(200, {
    ...headers,
    'content-length': body.length,
    ...(small && { 'content-encoding': 'gzip' }),
  });
  sendInPieces(response, request.method === 'HEAD' ? Buffer.alloc(0) : body);
}
