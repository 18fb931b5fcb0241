/** Objects as agents reported them, read by the schemas of `observed-data.ts`, and what of them could not be read. */
import { networkName } from '#shared/domain/network-keys.ts';
import { mostUnfit, type ObservedObject, type ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import {
  isObservedKind,
  type ObservedData,
  type ObservedKind,
  readData,
  type Unfit,
  unfitText,
  WireGuardKey,
} from '#shared/schema/protocol/observed-data.ts';

/** Undefined: there is none, or it is being deleted. */
export function dataOf<K extends ObservedKind>(
  set: ObservedSet | undefined,
  kind: K,
  name?: string,
): ObservedData<K> | undefined {
  const found = set?.objects.find((o) => o.kind === kind && !o.deleting && (name === undefined || o.name === name));
  return found && readData(kind, found.data).data;
}

/** No report makes more lines than this. */
const mostLines = 20;
const longestText = 200;
const gatewayPrefix = networkName.gateway('');

/** A line for each field that was left out, by the agent that reported or here. */
export function unreadable(set: ObservedSet | undefined): readonly string[] {
  const lines = (set?.objects ?? []).flatMap((object) =>
    [...(object.unfit ?? []).slice(0, mostUnfit), ...unfitOf(object)].map((one) => unfitText(object, one)),
  );
  return lines.slice(0, mostLines).map((line) => line.slice(0, longestText));
}

function unfitOf({ kind, name, data }: ObservedObject): readonly Unfit[] {
  if (!isObservedKind(kind)) return [];
  const { unfit } = readData(kind, data);
  const { publicKey } = data;
  // The other Secret of a peering has a PEM block there.
  if (kind !== 'Secret' || !name.startsWith(gatewayPrefix) || typeof publicKey !== 'string') return unfit;
  const key = WireGuardKey.safeParse(publicKey);
  const accepted = key.error?.issues[0]?.message ?? '';
  return key.success
    ? unfit
    : [...unfit, { field: 'publicKey', value: JSON.stringify(publicKey.slice(0, 60)), accepted }];
}
