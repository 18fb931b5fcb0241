/** Names of the clusters of a history and of what is in them. */
export const consumer = 'rome';
export const providerNames = ['milan', 'genoa'] as const;
export type ProviderName = (typeof providerNames)[number];
export const shop = 'shop';
export const shopThere = 'shop-rome';
export const ownNode = 'own';
export const virtualClass = 'liqo';
export const nodeOf = (provider: string): string => `vn-${provider}`;
/** Undefined: the cluster's own. */
export const providerOf = (node: string): string | undefined =>
  node === ownNode ? undefined : node.slice('vn-'.length);
