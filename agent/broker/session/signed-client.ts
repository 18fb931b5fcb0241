/** Signed requests to the broker: every one carries a fresh EdDSA JWT over method, path and body, so no bearer secret is ever stored. */

import { createHash, type KeyObject } from 'node:crypto';
import { Agent, request } from 'node:https';
import { SignJWT } from 'jose';
import type * as z from 'zod';
import { abortScope } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { AgentClaims } from '#shared/schema/protocol/agent-identity.ts';
import { protocolVersion } from '#shared/schema/protocol/agent-protocol.ts';

export interface BrokerIdentity {
  /** Without a trailing slash. */
  readonly url: string;
  readonly tenant: string;
  readonly clusterId: string;
  readonly privateKey: KeyObject;
  /** PEM of the broker's own CA; absent when its certificate is publicly trusted. */
  readonly ca?: string;
}

export interface BrokerClient {
  /** Sends JSON and parses the answer. Fails with the broker's own code, or `broker_unreachable`. */
  call<T>(method: 'GET' | 'POST', path: string, body: unknown, answer: z.ZodType<T>, signal: AbortSignal): Promise<T>;
  /** What a WebSocket handshake for `path` must carry. */
  authorization(method: string, path: string, body: string): Promise<string>;
  readonly identity: BrokerIdentity;
  close(): void;
}

const requestTimeoutMs = 15_000;

export function createBrokerClient(identity: BrokerIdentity, deps: { clock: Clock; ids: Ids }): BrokerClient {
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 4,
    ...(identity.ca === undefined ? {} : { ca: identity.ca }),
  });

  async function authorization(method: string, path: string, body: string): Promise<string> {
    const issuedAt = Math.floor(deps.clock.now() / 1000);
    const claims: AgentClaims = {
      iss: identity.clusterId,
      sub: `${identity.tenant}/${identity.clusterId}`,
      aud: identity.url,
      iat: issuedAt,
      exp: issuedAt + 60,
      jti: deps.ids.next('jti'),
      htm: method,
      htp: path,
      bsh: createHash('sha256').update(body).digest('base64url'),
      ver: protocolVersion,
    };
    const token = await new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT' })
      .sign(identity.privateKey);
    return `Bearer ${token}`;
  }

  async function call<T>(
    method: 'GET' | 'POST',
    path: string,
    body: unknown,
    answer: z.ZodType<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const pathOnly = path.split('?', 1)[0] ?? path;
    const headers: Record<string, string> = {
      authorization: await authorization(method, pathOnly, text),
      accept: 'application/json',
    };
    if (text) {
      headers['content-type'] = 'application/json';
      headers['content-length'] = String(Buffer.byteLength(text));
    }
    const response = await send({ agent, url: new URL(identity.url + path), method, headers, text, signal });
    if (response.status >= 400) throw problem(response, identity.url);
    const parsed = answer.safeParse(response.body === '' ? {} : JSON.parse(response.body));
    if (!parsed.success) {
      throw new AppError(
        'broker_unreachable',
        `the broker at ${identity.url} answered ${path} in an unknown form: ${parsed.error.message}`,
      );
    }
    return parsed.data;
  }

  return { call, authorization, identity, close: () => agent.destroy() };
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Outgoing {
  readonly agent: Agent;
  readonly url: URL;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly text: string;
  readonly signal: AbortSignal;
}

function send({ agent, url, method, headers, text, signal }: Outgoing): Promise<Answer> {
  const bounded = abortScope(signal);
  const timer = setTimeout(
    () => bounded.abort(new Error(`no answer within ${requestTimeoutMs / 1000} s`)),
    requestTimeoutMs,
  );
  return new Promise<Answer>((resolve, reject) => {
    const fail = (cause: unknown) =>
      reject(
        signal.aborted
          ? signal.reason
          : new AppError('broker_unreachable', `the broker at ${url.origin} did not answer: ${messageOf(cause)}`, {
              cause,
            }),
      );
    const outgoing = request(url, { agent, method, headers, signal: bounded.signal }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
      );
      response.on('error', fail);
    });
    outgoing.on('error', fail);
    outgoing.end(text);
  }).finally(() => {
    clearTimeout(timer);
    bounded.unlink();
  });
}

/** The broker's problem+json as the error it stands for. */
function problem(answer: Answer, url: string): AppError {
  let body: { code?: unknown; detail?: unknown; title?: unknown } = {};
  try {
    body = JSON.parse(answer.body);
  } catch {
    // a proxy in between may answer with HTML; the status says enough
  }
  const code =
    typeof body.code === 'string' && Object.hasOwn(codes, body.code) ? (body.code as ErrorCode) : 'broker_unreachable';
  const text = typeof body.detail === 'string' ? body.detail : typeof body.title === 'string' ? body.title : '';
  return new AppError(code, text || `the broker at ${url} answered with status ${answer.status}`, {
    detail: { status: answer.status },
  });
}
