/** The front door with an API server that is played behind it, and callers over real TLS. */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import type * as http from 'node:http';
import * as https from 'node:https';
import * as tls from 'node:tls';
import { digestOf } from '#agent/peering/credentials/front-door.ts';
import { createDoorAuthority, issueDoorClient, issueDoorServing } from '#agent/pki/door-certificates.ts';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { AccountTokens } from '../account-tokens.ts';
import type { DoorCaller } from '../door-callers.ts';
import { type FrontDoorOptions, openFrontDoor } from '../front-door.ts';
import { playApiServer } from './played-api-server.ts';

export const now = Date.now();
export const authority = createDoorAuthority(now);
export const serving = issueDoorServing(authority, ['127.0.0.1'], now);
const api = issueServingCertificate(['127.0.0.1'], now);
export const secret = { name: 'isthmus-credential-peer', uid: '1' };

export function identity(by = authority, seconds = 3600) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const subject = { commonName: 'rome', organization: 'liqo.io' };
  const cert = issueDoorClient(by, subject, publicKey, { now, seconds });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { cert, key, digest: digestOf(new X509Certificate(cert).raw) };
}
export const rome = identity();

export const closers: (() => unknown)[] = [];
/** After each test. */
export async function closeDoors(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

interface Asked {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

/** Answers with what it was asked; watches of `/watch` stay open after their first line. */
async function startApi(status: (url: string) => number = () => 200) {
  const asked: Asked[] = [];
  const keep = ({ method, url, headers }: http.IncomingMessage, body = '') =>
    asked.push({ method, url, headers, body });
  const played = await playApiServer(
    api,
    (request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => {
        body += piece.toString();
      });
      request.on('end', () => {
        keep(request, body);
        response.writeHead(status(request.url ?? ''), { 'content-type': 'application/json', 'x-of-api': 'yes' });
        if (request.url === '/watch') response.write('first\n');
        else response.end(JSON.stringify(asked.at(-1)));
      });
    },
    (request) => {
      keep(request);
      return status(request.url ?? '') === 401;
    },
  );
  closers.push(() => played.close());
  return { ...played, asked, url: new URL(`https://127.0.0.1:${played.port}`) };
}

export async function startDoor(change: Partial<FrontDoorOptions> & { status?: (url: string) => number } = {}) {
  const behind = await startApi(change.status);
  const callers = new Map<string, DoorCaller>([
    [rome.digest, { consumer: 'rome', namespace: 'liqo-tenant-rome', account: 'isthmus-peer', secret }],
  ]);
  let issued = 0;
  const clock = new ManualClock(now);
  const request = async () => ({ token: `token-${++issued}`, endMs: clock.now() + 3_600_000 });
  const logged: string[] = [];
  const log: Log = { ...silentLog, warn: (...all) => void logged.push(JSON.stringify(all)) };
  const door = await openFrontDoor({
    ...{ serving, authority: authority.certificate, clock, log, port: 0, host: '127.0.0.1' },
    callerOf: (digest) => callers.get(digest),
    tokens: new AccountTokens(request, clock),
    upstream: { server: behind.url, ca: api.certificate },
    ...change,
  });
  closers.push(() => door.close());
  return { door, behind, callers, logged, clock, issued: () => issued };
}

export interface Call {
  readonly method?: string;
  readonly headers?: http.OutgoingHttpHeaders;
  readonly body?: string;
  readonly who?: { readonly cert?: string; readonly key?: string };
}
interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}
/** Node would take the name out of the Host header. */
const checkServerIdentity = (_host: string, certificate: tls.PeerCertificate) =>
  tls.checkServerIdentity('127.0.0.1', certificate);
/** One connection for all requests. Node 24.21 uses none again whose check is an option of the request. */
export const keptOpen = (): https.Agent => new https.Agent({ keepAlive: true, maxSockets: 1, checkServerIdentity });
export const options = (
  port: number,
  path: string,
  { method = 'GET', headers = {}, who = rome }: Call,
  agent: https.Agent | false = false,
) => ({
  ...{ host: '127.0.0.1', port, path, method, headers, agent, ca: authority.certificate, servername: '' },
  ...(agent === false && { checkServerIdentity }),
  ...(who.cert !== undefined && { cert: who.cert, key: who.key }),
});
export const call = (port: number, path: string, some: Call = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const request = https.request(options(port, path, some), (response) => {
      let text = '';
      response.on('data', (piece: Buffer) => {
        text += piece.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(some.body);
  });

/** What is answered to bytes as they are, by one that holds the certificate of rome. */
export const raw = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { cert, key } = rome;
    const socket = tls.connect({ host: '127.0.0.1', port, ca: authority.certificate, cert, key }, () =>
      socket.write(bytes, 'latin1'),
    );
    let text = '';
    socket.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
    });
    socket.on('error', reject).on('close', () => resolve(text));
  });
