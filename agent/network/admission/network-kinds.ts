/** Which Configurations, gateways and Networks are accepted. Pure; the controllers check again what can change later. */
import { isDeepStrictEqual } from 'node:util';
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { type CidrRange, overlap, parseCidr, rangeProblem, sizeOf } from '#shared/domain/cidr.ts';
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkLabel, networkType } from '#shared/domain/network-keys.ts';
import type { ClusterCidrs, Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';

/** Removing finalizers and writing status stays possible for objects that today's rules would refuse. */
export const keepsSpec = (
  before: (KubeObject & { spec?: unknown }) | undefined,
  after: KubeObject & { spec?: unknown },
): boolean =>
  after.metadata.deletionTimestamp !== undefined ||
  (before !== undefined &&
    isDeepStrictEqual(before.spec, after.spec) &&
    isDeepStrictEqual(before.metadata.labels, after.metadata.labels));

interface Named {
  readonly field: string;
  readonly text: string;
  readonly range: CidrRange;
}

const kinds = ['pod', 'external'] as const;

const rangesOf = (cidrs: ClusterCidrs, at: string): Named[] =>
  kinds.flatMap((kind) =>
    cidrs[kind].map((text, i) => ({
      field: `${at}.cidr.${kind}[${i}]`,
      text,
      range: parseCidr(text) ?? { base: 0, length: 0 },
    })),
  );

export function validateConfiguration(before: Configuration | undefined, after: Configuration): Verdict {
  if (keepsSpec(before, after)) return allow;
  for (const side of ['local', 'remote'] as const) {
    const config = after.spec[side];
    if (!config) continue;
    const ranges = rangesOf(config.cidr, `spec.${side}`);
    for (const { field, text } of ranges) {
      const problem = rangeProblem(text);
      if (problem !== undefined) return deny('invalid_input', `${field} ${problem}`);
    }
    if (side === 'local') continue;
    for (const [i, one] of ranges.entries()) {
      const other = ranges.slice(0, i).find(({ range }) => overlap(range, one.range));
      if (other)
        return deny(
          'invalid_input',
          `${one.field} is ${one.text}, which overlaps ${other.field} (${other.text}): accepted are ranges of a peer that have no address in common`,
        );
    }
  }
  return allow;
}

/** `others`: all gateways of both kinds. */
export function validateGateway(
  before: KubeObject | undefined,
  after: KubeObject,
  others: readonly KubeObject[],
): Verdict {
  const peer = after.metadata.labels?.[label.remoteClusterId];
  const same = before?.metadata.labels?.[label.remoteClusterId] === peer;
  if (after.metadata.deletionTimestamp || (before && same)) return allow;
  if (!peer) {
    return deny(
      'invalid_input',
      `metadata.labels[${label.remoteClusterId}] is missing: accepted is the cluster ID of the peer`,
    );
  }
  const self = (o: KubeObject): boolean => o.kind === after.kind && keyOf(o) === keyOf(after);
  const other = others.find((o) => !self(o) && o.metadata.labels?.[label.remoteClusterId] === peer);
  if (!other) return allow;
  const state = other.metadata.deletionTimestamp ? 'is being removed; wait until it is gone' : 'delete it first';
  return deny(
    'already_exists',
    `metadata.labels[${label.remoteClusterId}] is ${peer}, to which ${other.kind} ${keyOf(other)} is the link already: accepted is one GatewayServer or GatewayClient for each peer; ${state}`,
  );
}

const typeOf = ({ metadata }: Network): string | undefined => metadata.labels?.[networkLabel.networkType];
const isExact = ({ metadata }: Network): boolean => metadata.labels?.[networkLabel.networkNotRemapped] === 'true';
const isShared = ({ metadata }: Network): boolean => metadata.labels?.[networkLabel.networkShared] === 'true';

/** `others`: all Networks of the cluster. Ranges that may be moved are never refused: they are moved. */
export function validateNetwork(before: Network | undefined, after: Network, others: readonly Network[]): Verdict {
  if (keepsSpec(before, after)) return allow;
  const { cidr, preAllocated = 0 } = after.spec;
  const problem = rangeProblem(cidr);
  if (problem !== undefined) return deny('invalid_input', `spec.cidr ${problem}`);
  const range = parseCidr(cidr) as CidrRange;
  if (preAllocated > sizeOf(range.length))
    return deny(
      'invalid_input',
      `spec.preAllocated is ${preAllocated}: accepted is at most ${sizeOf(range.length)}, all that ${cidr} has`,
    );
  if (!isExact(after)) return allow;
  const holder = others.find((other) => keyOf(other) !== keyOf(after) && collides(after, range, other));
  if (!holder) return allow;
  return deny(
    'already_exists',
    `spec.cidr is ${cidr}, which overlaps ${heldBy(holder)} of Network ${keyOf(holder)}${typeOf(holder) ? ` (${typeOf(holder)})` : ''}: accepted is a range with no address in common, because neither of the two may be moved`,
  );
}

const heldBy = ({ spec, status }: Network): string => status?.cidr ?? spec.cidr;

/** Pod, service and reserved ranges share addresses with each other, but two reserved ranges that do are one mistake. */
function collides(after: Network, range: CidrRange, other: Network): boolean {
  // What is not granted yet and may move will make room.
  if (other.status?.cidr === undefined && !isExact(other)) return false;
  const held = parseCidr(heldBy(other));
  if (!held || !overlap(held, range)) return false;
  const bothReserved = typeOf(after) === networkType.reserved && typeOf(other) === networkType.reserved;
  return bothReserved || !(isShared(after) && isShared(other));
}
