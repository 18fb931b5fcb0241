/** What the broker knows of the peerings of one cluster: the conditions and the link of both ends. Pure. */
import { nextStep } from '#cli/peerings/next-step.ts';
import type { LinkEnd } from '#shared/schema/api/network.ts';
import type { Peering, PeeringCondition } from '#shared/schema/api/resources.ts';

interface EndCondition extends Omit<PeeringCondition, 'side'> {
  /** Name of the cluster, or `both`. */
  readonly end: string;
}

export interface PeeringEnds {
  readonly consumer: string;
  readonly provider: string;
  readonly phase: Peering['phase'];
  readonly waitingFor: string;
  readonly nextStep: string;
  readonly conditions: readonly EndCondition[];
  /** As each cluster reports it, by its name. Absent: no link. */
  readonly link?: Readonly<Record<string, LinkEnd>>;
}

/** `only`: the peer that is asked about. */
export function endsOf(peerings: readonly Peering[], clusterId: string, only?: string): readonly PeeringEnds[] {
  return peerings
    .filter(({ phase }) => phase !== 'Gone')
    .filter(({ consumer, provider }) => [consumer, provider].includes(clusterId))
    .filter(({ consumer, provider }) => only === undefined || [consumer, provider].includes(only))
    .map((peering) => {
      const { consumer, provider, phase, waitingFor, conditions, network } = peering;
      const names = { consumer, provider, both: 'both' } as const;
      return {
        consumer,
        provider,
        phase,
        waitingFor,
        nextStep: nextStep(peering),
        conditions: conditions.map(({ side, ...condition }) => ({ end: names[side], ...condition })),
        ...(network?.link && { link: { [consumer]: network.link.consumer, [provider]: network.link.provider } }),
      };
    });
}

/** What does not hold, at the end of that name or at every one. */
export const openAt = ({ conditions }: PeeringEnds, end?: string): readonly EndCondition[] =>
  conditions.filter((condition) => condition.status !== 'True' && (end === undefined || condition.end === end));

/** Of the other ends only: what is wrong here is seen in the cluster itself. */
export const warningsOf = (ends: readonly PeeringEnds[], clusterId: string): readonly string[] =>
  ends.flatMap((one) =>
    openAt(one)
      .filter(({ end, status }) => end !== clusterId && status === 'False')
      .map(
        ({ end, type, message }) =>
          `peering ${one.consumer} -> ${one.provider}: the broker says of ${end === 'both' ? 'both ends' : end}: ${type}: ${message}`,
      ),
  );
