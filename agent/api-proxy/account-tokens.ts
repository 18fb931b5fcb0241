/** Tokens of consumers' accounts while this process serves the front door. They are kept in memory only. */
import type { BoundAccount } from '#agent/peering/credentials/issue-token.ts';
import type { Clock } from '#shared/ports/clock.ts';

export interface IssuedAccountToken {
  readonly token: string;
  readonly endMs: number;
}

const keyOf = ({ namespace, account, secret }: BoundAccount): string => `${namespace}/${account}/${secret.uid}`;

/** One for each account, asked for again when half of its life is over or the API server refuses it. */
export class AccountTokens {
  readonly #request: (account: BoundAccount) => Promise<IssuedAccountToken>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #held = new Map<string, { readonly token: string; readonly renewAtMs: number }>();
  /** At most one request for an account at a time. */
  readonly #asked = new Map<string, Promise<string>>();

  constructor(request: (account: BoundAccount) => Promise<IssuedAccountToken>, clock: Pick<Clock, 'now'>) {
    this.#request = request;
    this.#clock = clock;
  }

  /** Rejects as the API server refuses the request. */
  async of(account: BoundAccount): Promise<string> {
    const key = keyOf(account);
    const held = this.#held.get(key);
    if (held !== undefined && held.renewAtMs > this.#clock.now()) return held.token;
    const asked = this.#asked.get(key) ?? this.#ask(key, account);
    this.#asked.set(key, asked);
    return await asked;
  }

  async #ask(key: string, account: BoundAccount): Promise<string> {
    const from = this.#clock.now();
    try {
      const { token, endMs } = await this.#request(account);
      this.#held.set(key, { token, renewAtMs: from + Math.max(0, endMs - from) / 2 });
      return token;
    } finally {
      this.#asked.delete(key);
    }
  }

  forget(account: BoundAccount): void {
    this.#held.delete(keyOf(account));
  }

  /** Forgets those of all other accounts. */
  retain(accounts: readonly BoundAccount[]): void {
    const kept = new Set(accounts.map(keyOf));
    for (const key of [...this.#held.keys()]) if (!kept.has(key)) this.#held.delete(key);
  }
}
