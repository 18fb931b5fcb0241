/** The one table: names that the adapter, the infrastructure and the tests share. */

/** String keys; `ttl` in seconds is DynamoDB's time to live; the stream carries new images. */
export const table = {
  partitionKey: 'pk',
  sortKey: 'sk',
  timeToLive: 'ttl',
  streamView: 'NEW_IMAGE',
} as const;
