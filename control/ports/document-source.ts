/** The document source port: fetches a small public JSON document, such as the keys of an identity provider. */
export interface DocumentSource {
  /**
   * Why the URL may not be fetched at all - scheme, address, credentials in it - in words for its owner; undefined when it may. Names are
   * checked again when they are resolved.
   */
  refusal(url: string): string | undefined;
  /** The parsed document. Throws `issuer_unreachable`. Follows no redirect. */
  json(url: string, signal?: AbortSignal): Promise<unknown>;
}
