/** Configuration: the ranges that the peer has. */
import { rangeProblem } from '#shared/domain/cidr.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { isOfPeer } from './derived.ts';
import { type BrokerKind, bothRoles, peeringLabels, watched } from './kind.ts';
import { asObject, pick, specOf, strayField, textOf } from './manifest.ts';

const maxRanges = 32;

export const configuration: BrokerKind<'Configuration'> = {
  type: networkKinds.configurations,
  accepted: {
    roles: bothRoles,
    names: (set) => [set.peer],
    labels: peeringLabels,
    annotations: [],
    members: { spec: ['remote'] },
    check: checkRanges,
  },
  caches: watched(networkKinds.configurations),
  isDerived: isOfPeer,
  observed: ({ status }) => pick(status, 'remote', 'conditions'),
  takedown: { consumer: 'link', provider: 'link' },
  removedBy: 'agent',
  announcedRanges(manifest) {
    const cidr = asObject(asObject(specOf(manifest).remote).cidr);
    return [cidr.pod, cidr.external].flatMap((list) => (Array.isArray(list) ? list.map(textOf) : []));
  },
};

function checkRanges(manifest: KubeManifest): string | undefined {
  const remote = asObject(specOf(manifest).remote);
  const cidr = asObject(remote.cidr);
  const stray =
    strayField(remote, ['cidr'], 'spec.remote') ?? strayField(cidr, ['pod', 'external'], 'spec.remote.cidr');
  if (stray !== undefined) return stray;
  for (const field of ['pod', 'external'] as const) {
    const list = cidr[field];
    const where = `spec.remote.cidr.${field}`;
    if (!Array.isArray(list) || list.length === 0 || list.length > maxRanges)
      return `${where} is ${JSON.stringify(list)}; accepted is a list of 1 to ${maxRanges} ranges`;
    for (const range of list as unknown[]) {
      const problem = rangeProblem(textOf(range));
      if (problem !== undefined) return `${where} ${problem}`;
    }
  }
  return undefined;
}
