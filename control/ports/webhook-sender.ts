/** The webhook sender port: one POST to an address that a tenant chose, so to nowhere that the operator would not want. */
export interface WebhookPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What came of one attempt to bring an event to where its tenant wants it. */
export type SendOutcome =
  /** An answer with any status. `text` is the beginning of its body, at most 1 KB, without control characters. */
  | { readonly status: number; readonly text: string; readonly retryAfterMs?: number }
  /** It was not taken; why, in words for the owner. `final`: nor would it be another time. */
  | { readonly error: string; readonly final?: true };

export interface WebhookSender {
  /** Why nothing may be posted there at all - scheme, address, credentials in it - in words for its owner; undefined when it may. */
  refusal(url: string): string | undefined;
  /**
   * Within ten seconds. Resolves the name once, checks the addresses, connects to one that was checked, follows no redirect. Rejects only when
   * `signal` aborts.
   */
  post(post: WebhookPost, signal?: AbortSignal): Promise<SendOutcome>;
}
