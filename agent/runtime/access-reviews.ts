/** Asks the API server whose a bearer token is and what its holder may do. Answers are remembered for a while: rights that are taken away end after that. */
import { createHash } from 'node:crypto';
import { type AccessAttributes, type ReviewedUser, reviewAccess } from '#kube/http/access-review.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly error?: string;
    readonly user?: Partial<Omit<ReviewedUser, 'user'>> & { readonly username?: string };
  };
}

interface Remembered {
  /** For a token and for a right. */
  readonly allowedMs: number;
  readonly deniedMs: number;
}

const maxRemembered = 500;

export class AccessReviews {
  readonly #api: KubeApi;
  readonly #clock: Clock;
  readonly #remembered: Remembered;
  readonly #answers = new Map<string, { readonly allowed: boolean; readonly until: number }>();
  /** By the hash of a token, which itself is not kept. Without a caller: refused. */
  readonly #known = new Map<string, { readonly caller: ReviewedUser | undefined; readonly until: number }>();

  constructor(api: KubeApi, clock: Clock, remembered: Remembered) {
    this.#api = api;
    this.#clock = clock;
    this.#remembered = remembered;
  }

  /** Fails with `unauthenticated` when the cluster does not know the token, with `kube_*` when it cannot be asked. */
  async holderOf(token: string, signal?: AbortSignal): Promise<ReviewedUser> {
    const key = createHash('sha256').update(token).digest('base64');
    const known = this.#known.get(key);
    if (known && known.until > this.#clock.now()) return admitted(known.caller);
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
    const { status } = await this.#api.postPath<TokenReview>(
      '/apis/authentication.k8s.io/v1/tokenreviews',
      review,
      signal,
    );
    const { username, groups = [], uid, extra } = status?.user ?? {};
    const caller = status?.authenticated === true && username ? { user: username, groups, uid, extra } : undefined;
    const { allowedMs, deniedMs } = this.#remembered;
    if (this.#known.size >= maxRemembered) this.#known.clear();
    this.#known.set(key, { caller, until: this.#clock.now() + (caller ? allowedMs : deniedMs) });
    return admitted(caller);
  }

  async allows(caller: ReviewedUser, attributes: AccessAttributes, signal?: AbortSignal): Promise<boolean> {
    const key = JSON.stringify([caller, attributes]);
    const known = this.#answers.get(key);
    if (known && known.until > this.#clock.now()) return known.allowed;
    const allowed = await reviewAccess(this.#api, caller, attributes, signal);
    const { allowedMs, deniedMs } = this.#remembered;
    if (this.#answers.size >= maxRemembered) this.#answers.clear();
    this.#answers.set(key, { allowed, until: this.#clock.now() + (allowed ? allowedMs : deniedMs) });
    return allowed;
  }
}

function admitted(caller: ReviewedUser | undefined): ReviewedUser {
  if (caller !== undefined) return caller;
  throw new AppError('unauthenticated', 'the bearer token is not one of this cluster, or has expired');
}
