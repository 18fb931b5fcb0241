/** Where the mapping of a namespace stands at one provider. */
export type Place =
  | { readonly kind: 'accepted'; readonly remoteNamespace: string }
  | { readonly kind: 'held'; readonly why: string }
  | { readonly kind: 'none' };
