/** The phases of a peering at the broker, in the order of its life. */
export const phases = [
  'Proposed',
  'Connecting',
  'Authenticating',
  'Negotiating',
  'Ready',
  'Degraded',
  'Unpeering',
  'Gone',
  'Failed',
] as const;
export type Phase = (typeof phases)[number];
