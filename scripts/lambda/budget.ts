/** What one bundle may cost at a cold start. */
export const budget = {
  maxBytes: 600 * 1024,
  /** Printed, and asserted only far above: other work on the machine must not fail a test. */
  importMs: 120,
} as const;
