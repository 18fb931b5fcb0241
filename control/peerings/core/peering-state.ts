/** The state in which a peering begins. */
import type { PeeringSpec, PeeringState } from '../../model/peering-records.ts';

export const initialState: PeeringState = { phase: 'Proposed', conditions: [], phaseSince: {}, leftBehind: [] };

/** Whether the `Peering` object has the last word: its terms hold, and its end is the end of the peering. */
export const ownsTerms = ({ owner }: NonNullable<PeeringSpec['ask']>): boolean => owner !== 'Broker';
