/** Decides which consumer may connect through the proxy, to what, and how often. Remembers used token ids; opens no connection itself. */
import type { KeyObject } from 'node:crypto';
import { certificatePath } from '#agent/model/proxy-paths.ts';
import {
  proxyClockSkewSeconds,
  proxyTokenLifeSeconds,
  type ReadToken,
  readProxyToken,
} from '#agent/pki/proxy-token.ts';
import { limitKey } from '#shared/domain/socket-address.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { TokenBuckets } from './token-buckets.ts';

/** What a consumer asks for: a connection to the API server, or the certificate that this cluster holds ready for it. */
export type ProxyTarget = 'api-server' | 'certificate';

export interface ProxyAuthorizerOptions {
  /** This cluster's ID. */
  readonly clusterId: string;
  /** `host:port` of the API server by every name that consumers call it, lower-case. Nothing else is reached. */
  readonly targets: ReadonlySet<string>;
  /** Of this run of the proxy, unguessable. */
  readonly nonce: string;
  readonly clock: Pick<Clock, 'now'>;
  /** Public keys of this consumer, none when it has no such business here. */
  readonly keysOf: (consumer: string, purpose: ProxyTarget) => readonly KeyObject[];
  /** The one consumer that may connect to the API server from this address without a token. */
  readonly consumerAt?: (from: string) => string | undefined;
  /** Called with evidence on whether consumers send tokens: `consumer` sent a valid one or needs none, or a CONNECT to the API server was refused for want of one. */
  readonly onEvidence?: (news: TokenEvidence) => void;
}

export type TokenEvidence =
  | { readonly consumer: string; readonly byAddress?: true }
  | { readonly tokenlessFrom: string };

export interface Caller {
  readonly method: string;
  /** As in the request line. */
  readonly target: string;
  readonly authorization: string | undefined;
  /** Network address. */
  readonly from: string;
}

/** `reason` is for the caller and the log; it repeats nothing that the caller sent. */
export type Verdict =
  | { readonly pass: true; readonly consumer: string; readonly purpose: ProxyTarget; readonly byAddress?: true }
  | {
      readonly pass: false;
      readonly status: 403 | 405 | 407 | 429;
      readonly reason: string;
      readonly consumer?: string;
    };

/** A consumer opens a connection per watch at start, then keeps them. */
const perConsumer = { burst: 300, perSecond: 20 } as const;
/** Rate limit before the caller is known; several peers may share one address behind NAT. */
const perAddress = { burst: 600, perSecond: 60 } as const;

export class ProxyAuthorizer {
  readonly #options: ProxyAuthorizerOptions;
  readonly #consumers = new TokenBuckets(perConsumer, 1_000);
  readonly #addresses = new TokenBuckets(perAddress, 1_000);
  /** `jti` of each token that was accepted, by consumer, to the second from which it is expired anyway. In order of arrival. */
  readonly #shown = new Map<string, number>();

  constructor(options: ProxyAuthorizerOptions) {
    this.#options = options;
  }

  async authorize({ method, target, authorization, from }: Caller): Promise<Verdict> {
    const now = this.#options.clock.now();
    if (!this.#addresses.take(limitKey(from), now)) return refuse(429, 'too many requests from this address');
    const purpose = purposeOf(method, target);
    if (purpose === undefined) return refuse(405, `this is a proxy for CONNECT, and answers GET ${certificatePath}`);
    const text = /^Bearer ([\w.-]+)$/i.exec(authorization ?? '')?.[1];
    if (authorization === undefined && purpose === 'api-server') {
      const consumer = this.#options.consumerAt?.(from);
      const how = { byAddress: true } as const;
      if (consumer !== undefined)
        return this.#admit(consumer, purpose, target, now, how, () => this.#options.onEvidence?.({ consumer, ...how }));
    }
    if (text === undefined) {
      if (purpose === 'api-server') this.#options.onEvidence?.({ tokenlessFrom: from });
      return refuse(407, 'a token of a consumer cluster is missing');
    }
    const token = readProxyToken(text);
    if (token === undefined) return refuse(407, 'this is no token of a consumer cluster');
    const consumer = token.claims.iss;
    const isSigned = await this.#isSigned(token, purpose);
    // From here to `#remember` nothing waits: of two that show one token at the same time, the second finds it shown.
    const objection = isSigned
      ? this.#objection(token, now)
      : 'the token is not signed by a consumer that peers through the link';
    if (objection !== undefined) return refuse(407, objection);
    return this.#admit(consumer, purpose, target, now, {}, () => {
      this.#remember(token, now);
      this.#options.onEvidence?.({ consumer });
    });
  }

  /** Rate and destination of a known consumer. `onAdmitted` is called once the connection is within the rate. */
  #admit(
    consumer: string,
    purpose: ProxyTarget,
    target: string,
    now: number,
    how: { readonly byAddress?: true },
    onAdmitted: () => void,
  ): Verdict {
    if (!this.#consumers.take(consumer, now)) return { ...refuse(429, 'too many connections at once'), consumer };
    onAdmitted();
    if (purpose === 'api-server' && !this.#options.targets.has(target.toLowerCase()))
      return { ...refuse(403, 'only the API server of this cluster is reached from here'), consumer };
    return { pass: true, consumer, purpose, ...how };
  }

  /** Tokens shown so far that could be shown again. */
  get remembered(): number {
    return this.#shown.size;
  }

  async #isSigned({ claims, isSignedBy }: ReadToken, purpose: ProxyTarget): Promise<boolean> {
    const keys = (): readonly KeyObject[] => this.#options.keysOf(claims.iss, purpose);
    // Read again afterwards: the consumer may have lost its rights while the signature was checked.
    for (const key of keys()) if (await isSignedBy(key)) return keys().some((one) => one.equals(key));
    return false;
  }

  /** For a token with a valid signature only: the answer to an unknown issuer reveals nothing about the other checks. */
  #objection({ claims }: ReadToken, now: number): string | undefined {
    const { clusterId, nonce } = this.#options;
    const seconds = now / 1000;
    if (claims.aud !== clusterId) return 'the token is for another cluster';
    if (claims.nonce !== nonce) return 'the token is for another run of this proxy';
    if (claims.exp - claims.iat > proxyTokenLifeSeconds) return 'the token lives too long';
    if (claims.exp + proxyClockSkewSeconds < seconds) return 'the token has expired';
    if (claims.iat - proxyClockSkewSeconds > seconds) return 'the token is from the future';
    if (this.#shown.has(`${claims.iss} ${claims.jti}`)) return 'the token was shown before';
    return undefined;
  }

  #remember({ claims }: ReadToken, now: number): void {
    for (const [key, until] of this.#shown) {
      if (until >= now / 1000) break;
      this.#shown.delete(key);
    }
    // Every id is kept equally long, independent of its token's own expiry, so that the oldest entry is always the first to expire.
    const until = now / 1000 + proxyTokenLifeSeconds + 2 * proxyClockSkewSeconds + 1;
    this.#shown.set(`${claims.iss} ${claims.jti}`, until);
  }
}

const purposeOf = (method: string, target: string): ProxyTarget | undefined => {
  if (method === 'CONNECT') return 'api-server';
  return method === 'GET' && target === certificatePath ? 'certificate' : undefined;
};

const refuse = <S extends 403 | 405 | 407 | 429>(status: S, reason: string) =>
  ({ pass: false, status, reason }) as const;
