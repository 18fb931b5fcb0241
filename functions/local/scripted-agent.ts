/** For tests: an agent that says exactly what the test tells it to, over real HTTPS and a real WebSocket. */
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { request } from 'node:https';
import { SignJWT } from 'jose';
import WebSocket from 'ws';
import { Ed25519Jwk, JoinToken } from '#shared/schema/protocol/agent-identity.ts';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any;
}

export interface Outgoing {
  readonly method: string;
  readonly url: string;
  readonly ca: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export const send = ({ method, url, ca, headers = {}, body }: Outgoing): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method, ca, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body:
            text === ''
              ? undefined
              : /[/+]json/.test(String(response.headers['content-type']))
                ? JSON.parse(text)
                : text,
        });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });

export const facts: ClusterFacts = {
  agentVersion: '0.1.0',
  protocolVersion: 1,
  capabilities: [],
  kubernetesVersion: 'v1.34.4',
  apiServerUrl: 'https://192.0.2.1:6443',
  apiServerCa: 'PEM',
  podCidrs: ['10.1.0.0/16'],
  serviceCidrs: [],
  nodes: 1,
  allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
  policies: [
    {
      name: 'default',
      asConsumer: { enabled: true, autoAccept: true, peers: ['*'] },
      asProvider: {
        enabled: true,
        autoAccept: true,
        peers: ['*'],
        maxResourcesPerPeer: { cpu: '3' },
        classes: ['default'],
      },
    },
  ],
};

/** What a test may get wrong on purpose. */
export interface Tampering {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly key?: KeyObject;
  /** Replaces the body after signing. */
  readonly sentBody?: unknown;
  readonly authorization?: string;
}

export class ScriptedAgent {
  readonly token: JoinToken;
  readonly #ca: string;
  readonly #key: KeyObject;
  /** The last `authorization` header: for replays. */
  lastAuthorization = '';

  constructor(joinToken: string, ca: string, key: KeyObject = generateKeyPairSync('ed25519').privateKey) {
    this.token = JoinToken.parse(
      JSON.parse(Buffer.from(joinToken.replace('isthmus1.', ''), 'base64url').toString('utf8')),
    );
    this.#ca = ca;
    this.#key = key;
  }

  async sign(
    method: string,
    path: string,
    body: string,
    { claims = {}, key = this.#key }: Tampering = {},
  ): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    const { tenant, clusterId, url } = this.token;
    const jwt = await new SignJWT({
      iss: clusterId,
      sub: `${tenant}/${clusterId}`,
      aud: url,
      iat: now,
      exp: now + 60,
      jti: randomUUID(),
      htm: method,
      htp: path.split('?')[0],
      bsh: createHash('sha256').update(body).digest('base64url'),
      ...claims,
    })
      .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT' })
      .sign(key);
    this.lastAuthorization = `Bearer ${jwt}`;
    return this.lastAuthorization;
  }

  async call(method: 'GET' | 'POST', path: string, body?: unknown, tampering: Tampering = {}): Promise<Answer> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const authorization = tampering.authorization ?? (await this.sign(method, path, text, tampering));
    const sent = tampering.sentBody === undefined ? text : JSON.stringify(tampering.sentBody);
    return send({
      method,
      url: this.token.url + path,
      ca: this.#ca,
      headers: { authorization, ...(sent !== '' && { 'content-type': 'application/json' }) },
      ...(sent !== '' && { body: sent }),
    });
  }

  enroll(over: Readonly<Record<string, unknown>> = {}, tampering: Tampering = {}): Promise<Answer> {
    const publicKey = Ed25519Jwk.parse(createPublicKey(this.#key).export({ format: 'jwk' }));
    const body = { clusterId: this.token.clusterId, token: this.token.secret, publicKey, facts, ...over };
    return this.call('POST', '/v1/agent/enroll', body, tampering);
  }

  /** Resolves once it is open; rejects with the HTTP status when it is refused. */
  async connect(tampering: Tampering = {}): Promise<WebSocket> {
    const authorization = tampering.authorization ?? (await this.sign('GET', '/v1/agent/connect', '', tampering));
    const socket = new WebSocket(`${this.token.url.replace('https', 'wss')}/v1/agent/connect`, {
      ca: this.#ca,
      headers: { authorization },
    });
    await new Promise<void>((resolve, reject) => {
      socket.once('open', () => resolve());
      socket.once('unexpected-response', (_request, response) => reject(new Error(`status ${response.statusCode}`)));
      socket.once('error', reject);
    });
    return socket;
  }
}

/** The next frame. */
export const frame = (socket: WebSocket): Promise<unknown> =>
  new Promise((resolve, reject) => {
    socket.once('message', (data) => resolve(JSON.parse(String(data))));
    socket.once('close', (code) => reject(new Error(`closed with ${code}`)));
  });
