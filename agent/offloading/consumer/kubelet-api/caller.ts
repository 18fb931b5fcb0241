/**
 * Authenticates and authorizes callers of the kubelet endpoint: TLS with the API server's client CA, or a token that the cluster accepts (metrics
 * servers and Prometheus bring theirs); then a SubjectAccessReview.
 */

import type { TLSSocket } from 'node:tls';
import { AccessReviews } from '#agent/runtime/access-reviews.ts';
import type { ReviewedUser } from '#kube/http/access-review.ts';
import type { KubeApi } from '#kube/model/types.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { accessVerbOf, subresourcesOf } from './routes.ts';

/** Where every API server publishes what its clients, and it itself, are verified with. */
export const authenticationConfig = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const;
export const clientCaOf = (config: ConfigMap | undefined): string | undefined =>
  config?.data?.['client-ca-file'] || undefined;

/** Fails with `unauthenticated`. The chain was verified by TLS against the client CA of the moment. */
function holderOf(socket: TLSSocket): ReviewedUser {
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

const allowedMs = 10_000;
const deniedMs = 3_000;

export interface AccessDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
}

/** Asks the cluster, and remembers the answer for seconds: rights that are taken away end soon. */
export class NodeAccess {
  readonly #reviews: AccessReviews;

  constructor({ api, clock }: AccessDeps) {
    this.#reviews = new AccessReviews(api, clock, { allowedMs, deniedMs });
  }

  /** Fails with `unauthenticated`. A certificate counts before a token. `authorization`: the header. */
  async callerOf(socket: TLSSocket, authorization: string | undefined, signal?: AbortSignal): Promise<ReviewedUser> {
    const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined || hasCertificate(socket)) return holderOf(socket);
    return this.#reviews.holderOf(token, signal);
  }

  /** Fails with `forbidden`. */
  async require(caller: ReviewedUser, node: string, method: string, url: string, signal?: AbortSignal): Promise<void> {
    const verb = accessVerbOf(method);
    const subresources = subresourcesOf(url);
    for (const subresource of subresources) {
      const resourceAttributes = { verb, version: 'v1', resource: 'nodes', subresource, name: node };
      if (await this.#reviews.allows(caller, { resourceAttributes }, signal)) return;
    }
    throw new AppError(
      'forbidden',
      `user ${JSON.stringify(caller.user)} may not ${verb} nodes/${subresources.at(-1)} of node ${node}; bind a ClusterRole that allows it`,
    );
  }
}
