/** Settings of every AWS client: fail within seconds, try again with jitter, take credentials and Region from the environment. */
export const clientSettings = {
  maxAttempts: 4,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 3_000, throwOnRequestTimeout: true },
} as const;
