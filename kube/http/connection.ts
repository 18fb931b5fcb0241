/** How to reach one API server and with which credentials: the in-cluster form, and what every form has in common. */
import { readFileSync } from 'node:fs';
import type * as http from 'node:http';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { AnswerBounds } from './answer-bounds.ts';
import { createAgent } from './tls.ts';

export interface ClusterConnection {
  /** Base URL of the API server; a path prefix (a proxy such as Rancher's) is kept. */
  readonly server: URL;
  /** The certificate authority of the server, PEM; undefined means the system's. */
  readonly ca: string | undefined;
  /** The namespace that the credentials come with. */
  readonly namespace: string | undefined;
  /** The pool for the next request; may be replaced when client certificates rotate. */
  readonly agent: http.Agent;
  /** Of a server that is not ours. */
  readonly bounds?: AnswerBounds;
  /** Headers that authenticate a request, as of the last `authorize`. */
  headers(): Readonly<Record<string, string>>;
  /** Renews credentials that have run out. Cheap when there is nothing to do; call before each request. */
  authorize(): Promise<void>;
  /** Closes idle sockets. Requests that are running go on. */
  close(): void;
}

export interface InClusterOptions {
  readonly host?: string;
  readonly port?: string | number;
  /** Where the kubelet mounts token, CA and namespace. */
  readonly directory?: string;
  readonly clock?: Pick<Clock, 'now'>;
}

const tokenLifeMs = 60_000;

/** From the files that the kubelet mounts into every pod. The token rotates, so it is read again each minute. */
export function connectInCluster(options: InClusterOptions = {}): ClusterConnection {
  const directory = options.directory ?? '/var/run/secrets/kubernetes.io/serviceaccount';
  const host = options.host ?? 'kubernetes.default.svc';
  const now = (): number => options.clock?.now() ?? performance.now();
  const server = parseServer(`https://${host.includes(':') ? `[${host}]` : host}:${options.port ?? 443}`, 'host');
  const ca = readMounted(directory, 'ca.crt');
  const agent = createAgent(server, { ca });
  const token = rotatingToken(() => readMounted(directory, 'token'), now);
  return {
    server,
    ca,
    namespace: readMounted(directory, 'namespace').trim(),
    agent,
    headers: () => ({ authorization: `Bearer ${token()}` }),
    async authorize() {},
    close: () => agent.destroy(),
  };
}

/** Reads a token at once and again each minute, since the file is rotated. A failed read keeps the old token. */
export function rotatingToken(read: () => string, now: () => number): () => string {
  let token = read().trim();
  let readAt = now();
  return () => {
    if (now() - readAt >= tokenLifeMs) {
      readAt = now();
      try {
        token = read().trim() || token;
      } catch {
        // The file is being replaced; the token in hand outlives the next minute.
      }
    }
    return token;
  };
}

function readMounted(directory: string, file: string): string {
  try {
    return readFileSync(path.join(directory, file), 'utf8');
  } catch (cause) {
    throw new AppError(
      'host_unsupported',
      `cannot read ${path.join(directory, file)}: this process does not run in a pod with a mounted service account; give a kubeconfig instead`,
      { detail: { field: file }, cause },
    );
  }
}

/** Refuses what is no http(s) URL, naming `field`. */
export function parseServer(text: string, field: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new AppError('invalid_input', `${field} is ${JSON.stringify(text)}, want an http:// or https:// URL`, {
      detail: { field, value: text, accepted: 'an http:// or https:// URL' },
    });
  }
  return url;
}

/** The URL's path prefix (never with a trailing slash) and a path of the API. */
export const pathAt = (connection: ClusterConnection, apiPath: string): string =>
  connection.server.pathname.replace(/\/$/, '') + apiPath;
