/**
 * Authenticates and authorizes callers of the kubelet endpoint: TLS with the API server's client CA, or a token that the cluster accepts (metrics
 * servers and Prometheus bring theirs); then a SubjectAccessReview.
 */

import { createHash } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { isAllowed, type ReviewedUser } from '#kube/http/access-review.ts';
import type { KubeApi } from '#kube/model/types.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { accessVerbOf, subresourcesOf } from './routes.ts';

export type Caller = ReviewedUser;

/** Where every API server publishes what its clients, and it itself, are verified with. */
export const authenticationConfig = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const;
export const clientCaOf = (config: ConfigMap | undefined): string | undefined =>
  config?.data?.['client-ca-file'] || undefined;

/** Fails with `unauthenticated`. The chain was verified by TLS against the client CA of the moment. */
function holderOf(socket: TLSSocket): Caller {
  const certificate = socket.getPeerCertificate();
  if (!certificate || Object.keys(certificate).length === 0) {
    throw new AppError(
      'unauthenticated',
      'no client certificate and no bearer token was presented; the kubelet endpoint of a virtual node answers the API server and callers that have rights on nodes',
    );
  }
  if (!socket.authorized) {
    const why = socket.authorizationError;
    throw new AppError(
      'unauthenticated',
      `the client certificate is not accepted (${messageOf(why)}); it must be issued by the CA in client-ca-file of ConfigMap ${authenticationConfig.namespace}/${authenticationConfig.name}`,
    );
  }
  const { CN, O } = certificate.subject as { CN?: string | string[]; O?: string | string[] };
  const [user] = [CN ?? []].flat();
  if (!user) throw new AppError('unauthenticated', 'the client certificate names no user; its subject needs a CN');
  return { user, groups: [...[O ?? []].flat(), 'system:authenticated'] };
}

const hasCertificate = (socket: TLSSocket): boolean => Object.keys(socket.getPeerCertificate() ?? {}).length > 0;

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly error?: string;
    readonly user?: Partial<Omit<Caller, 'user'>> & { readonly username?: string };
  };
}

const allowedMs = 10_000;
const deniedMs = 3_000;
const maxRemembered = 500;

export interface AccessDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
}

/** Asks the cluster, and remembers the answer for seconds: rights that are taken away end soon. */
export class NodeAccess {
  readonly #deps: AccessDeps;
  readonly #answers = new Map<string, { readonly allowed: boolean; readonly until: number }>();
  /** By the hash of a token, which itself is not kept. */
  readonly #known = new Map<string, { readonly caller: Caller; readonly until: number }>();

  constructor(deps: AccessDeps) {
    this.#deps = deps;
  }

  /** Fails with `unauthenticated`. A certificate counts before a token. `authorization`: the header. */
  async callerOf(socket: TLSSocket, authorization: string | undefined, signal?: AbortSignal): Promise<Caller> {
    const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined || hasCertificate(socket)) return holderOf(socket);
    const { api, clock } = this.#deps;
    const key = createHash('sha256').update(token).digest('base64');
    const known = this.#known.get(key);
    if (known && known.until > clock.now()) return known.caller;
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
    const { status } = await api.postPath<TokenReview>('/apis/authentication.k8s.io/v1/tokenreviews', review, signal);
    const { username, groups = [], uid, extra } = status?.user ?? {};
    if (status?.authenticated !== true || !username) {
      throw new AppError('unauthenticated', 'the bearer token is not one of this cluster, or has expired');
    }
    const caller = { user: username, groups, uid, extra };
    if (this.#known.size >= maxRemembered) this.#known.clear();
    this.#known.set(key, { caller, until: clock.now() + allowedMs });
    return caller;
  }

  /** Fails with `forbidden`. */
  async require(caller: Caller, node: string, method: string, url: string, signal?: AbortSignal): Promise<void> {
    const verb = accessVerbOf(method);
    const subresources = subresourcesOf(url);
    for (const subresource of subresources) {
      if (await this.#allows(caller, node, verb, subresource, signal)) return;
    }
    throw new AppError(
      'forbidden',
      `user ${JSON.stringify(caller.user)} may not ${verb} nodes/${subresources.at(-1)} of node ${node}; bind a ClusterRole that allows it`,
    );
  }

  async #allows(
    caller: Caller,
    name: string,
    verb: string,
    subresource: string,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const { api, clock } = this.#deps;
    const key = JSON.stringify([caller, name, verb, subresource]);
    const known = this.#answers.get(key);
    if (known && known.until > clock.now()) return known.allowed;
    const attributes = { verb, version: 'v1', resource: 'nodes', subresource, name };
    const allowed = await isAllowed(api, caller, attributes, signal);
    if (this.#answers.size >= maxRemembered) this.#answers.clear();
    this.#answers.set(key, { allowed, until: clock.now() + (allowed ? allowedMs : deniedMs) });
    return allowed;
  }
}
