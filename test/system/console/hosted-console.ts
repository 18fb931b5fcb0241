/** The console as a CDN serves it: files with one policy for all of them, the API under the same name, and no sessions. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { request as requestByTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { consoleFolder } from '#cli/commands/broker-console.ts';
import { readConsoleFiles, securityHeaders } from '#functions/local/console-files.ts';
import { consolePolicy } from '#infra/rules/console-headers.ts';

export interface HostedConsole {
  readonly url: string;
  close(): void;
}

/** `issuers`: as in `consoleIssuers` of a stage. `api`: of the broker, whose authority `ca` is. */
export async function serveHosted(
  api: { readonly url: string; readonly ca: string },
  issuers: readonly string[],
): Promise<HostedConsole> {
  const files = await readConsoleFiles(await consoleFolder());
  // infra/console.test.ts holds the template of the CDN against the same rule.
  const headers = { ...securityHeaders, 'content-security-policy': consolePolicy(issuers) };
  function pass(incoming: IncomingMessage, response: ServerResponse): void {
    const { host: _, ...rest } = incoming.headers;
    const options = { method: incoming.method ?? 'GET', headers: rest, ca: api.ca };
    const ask = api.url.startsWith('https:') ? requestByTls : request;
    const outgoing = ask(new URL(incoming.url ?? '/', api.url), options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }
  const server = createServer((incoming, response) => {
    const { pathname } = new URL(incoming.url ?? '/', 'http://localhost');
    if (pathname.startsWith('/v1/')) return pass(incoming, response);
    const file = files.get(pathname);
    // A bucket that may not be listed, behind a distribution that only reads.
    if (file === undefined || incoming.method !== 'GET') return void response.writeHead(403, headers).end();
    return void response.writeHead(200, { ...headers, 'content-type': file.type }).end(file.content);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
