/** This cluster's own ranges, and the pairs of ranges that a Configuration grants. */
import { type NetworkType, networkLabel, networkType } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import type { View } from '../plan/gateway-model.ts';
import { compareText } from './user-targets.ts';

/** Granted ranges of one role, sorted. */
export const ownRanges = (networks: readonly Network[], type: NetworkType): readonly string[] =>
  [
    ...new Set(
      networks
        .filter(({ metadata }) => metadata.labels?.[networkLabel.networkType] === type)
        .flatMap(({ status }) => status?.cidr ?? []),
    ),
  ].sort(compareText);

export const podRanges = (networks: readonly Network[]): readonly string[] => ownRanges(networks, networkType.pod);

/** Pairs whose view was granted; index i of the status belongs to index i of the spec. */
export function viewsOf(configuration: Configuration): {
  readonly pods: readonly View[];
  readonly external: readonly View[];
} {
  const real = configuration.spec.remote.cidr;
  const views = configuration.status?.remote?.cidr;
  return { pods: pairs(real.pod, views?.pod), external: pairs(real.external, views?.external) };
}

const pairs = (real: readonly string[] = [], views: readonly string[] = []): readonly View[] =>
  real.flatMap((range, index) => {
    const view = views[index];
    return view === undefined || view === '' ? [] : [{ real: range, view }];
  });
