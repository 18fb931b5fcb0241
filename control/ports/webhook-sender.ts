/** The webhook sender port: one POST to an address that a tenant chose, so to nowhere that the operator would not want. */
export interface WebhookPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type PostOutcome =
  /** An answer with any status. `text` is the beginning of its body, at most 1 KB, without control characters. */
  | { readonly status: number; readonly text: string; readonly retryAfterMs?: number }
  /** No answer; why, in words for the owner of the webhook. */
  | { readonly error: string };

export interface WebhookSender {
  /** Why nothing may be posted there at all - scheme, address, credentials in it - in words for its owner; undefined when it may. */
  refusal(url: string): string | undefined;
  /**
   * Within ten seconds. Resolves the name once, checks the addresses, connects to one that was checked, follows no redirect. Rejects only when
   * `signal` aborts.
   */
  post(post: WebhookPost, signal?: AbortSignal): Promise<PostOutcome>;
}
