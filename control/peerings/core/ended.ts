/** Whether a peering has ended or is about to. */
import type { PeeringRecord } from '../../model/peering-records.ts';

/** Over, for both sides or with one left behind: the pair is free of it as far as the living are concerned. */
export const hasEnded = ({ state }: PeeringRecord): boolean => state.removal?.endedAt !== undefined;

export const isEnding = ({ spec, state }: PeeringRecord): boolean =>
  spec.unpeerRequestedAt !== undefined || state.removal !== undefined;
