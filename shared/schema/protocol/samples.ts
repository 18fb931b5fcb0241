/** Minutes of a peering as an agent measured them: they travel with reports that are sent anyway. */
import * as z from 'zod';

/** More of one peering are dropped, the oldest first: what a broker that was away missed of longer ago stays unknown. */
export const mostSamplesOfPeering = 60;
/** In one report; the others come with the next. */
export const mostSamplesInReport = 1_000;

const count = z.int().min(0);

/** Absent: not known. */
export const Sample = z.object({
  at: count.describe('Unix time in seconds at which the minute began, by the clock of the cluster.'),
  rttMicros: count.optional().describe('Mean of the round trips.'),
  packetLoss: count.max(100).optional().describe('The highest of the recent probes, in percent.'),
  received: count.optional().describe('Bytes per second that came through the tunnel.'),
  sent: count.optional().describe('Bytes per second that went into the tunnel.'),
  cpuGranted: count.optional().describe('Thousandths of a core. The provider reports it and the next three.'),
  cpuUsed: count.optional(),
  memoryGranted: count.optional().describe('Bytes.'),
  memoryUsed: count.optional(),
});
export type Sample = z.infer<typeof Sample>;

export const PeeringSamples = z.object({ peering: z.string(), samples: z.array(Sample).max(mostSamplesInReport) });
export type PeeringSamples = z.infer<typeof PeeringSamples>;

/** Of all peerings together: each costs the broker a read and each of their hours a write. */
export const ReportedSamples = z
  .array(PeeringSamples)
  .max(mostSamplesInReport)
  .refine((all) => all.reduce((sum, { samples }) => sum + samples.length, 0) <= mostSamplesInReport, {
    error: `more than ${mostSamplesInReport} samples in one report; send the others with the next`,
  });
