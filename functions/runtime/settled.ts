/** When a wait for a peering is over. */
import type { PeeringView } from '#control/peerings/peering.ts';

/** Nothing more happens by itself that a waiting caller would want to see. */
export const isSettled = ({ phase }: Pick<PeeringView, 'phase'>): boolean =>
  phase === 'Ready' || phase === 'Failed' || phase === 'Gone';
