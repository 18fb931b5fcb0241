/** Reads what an agent reported about its end of a link, field by field: one that does not have the agreed form is as if not there. */
import type * as z from 'zod';
import { networkCidrsConfigured, networkName } from '#shared/domain/network-keys.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import {
  isEndpoint,
  type ObservedCondition,
  type ObservedData,
  unknownLatency,
  WireGuardKey,
} from '#shared/schema/protocol/observed-data.ts';
import type { ConnectionReport, Throughput } from '../../model/link.ts';
import type { ObservedRecord } from '../../model/peering-records.ts';
import { dataOf } from '../core/observed.ts';

/** Why something is not so, in the agent's words. */
interface Reason {
  readonly reason: string;
  readonly message: string;
}

export interface EndReport {
  /** Absent: there is none. */
  readonly gatewayKind?: string;
  readonly candidates: readonly string[];
  readonly key?: string;
  readonly connection?: ConnectionReport;
  /** By which ranges this side knows the other; only once they are granted. */
  readonly remote?: { readonly pod: readonly string[]; readonly external: readonly string[] };
  readonly isConfigured: boolean;
  readonly configuration?: Reason;
  readonly gateway?: Reason;
}

/** `peer`: the cluster at the other end, whose name all objects of the link have. */
export function readEnd(set: ObservedRecord | undefined, peer: string): EndReport {
  const server = dataOf(set, 'GatewayServer', peer);
  const client = server === undefined ? dataOf(set, 'GatewayClient', peer) : undefined;
  const gateway = server ?? client;
  const key = WireGuardKey.safeParse(dataOf(set, 'Secret', networkName.gateway(peer))?.publicKey);
  const connection = dataOf(set, 'Connection', networkName.gateway(peer));
  const lacking = gateway?.conditions?.find(({ status }) => status === 'False');
  return {
    ...(gateway === undefined ? {} : { gatewayKind: server === undefined ? 'GatewayClient' : 'GatewayServer' }),
    candidates: candidatesOf(gateway?.candidates, server?.endpoint),
    ...(key.success ? { key: key.data } : {}),
    ...(connection ? { connection: asConnection(connection, set?.throughput) } : {}),
    ...(lacking ? { gateway: reasonOf(lacking) } : {}),
    ...configurationOf(set, peer),
  };
}

function configurationOf(
  set: ObservedSet | undefined,
  peer: string,
): Pick<EndReport, 'isConfigured' | 'configuration' | 'remote'> {
  const data = dataOf(set, 'Configuration', peer);
  if (data === undefined) return { isConfigured: false };
  const generation = set?.objects.find(({ kind, name }) => kind === 'Configuration' && name === peer)?.generation;
  const { conditions = [], remote } = data;
  const configured = conditions.find(({ type }) => type === networkCidrsConfigured);
  const current = (configured?.observedGeneration ?? generation) === generation;
  if (configured?.status === 'True' && current && remote) {
    const { pod = [], external = [] } = remote.cidr;
    return { isConfigured: true, remote: { pod, external } };
  }
  return { isConfigured: false, ...(configured && current ? { configuration: reasonOf(configured) } : {}) };
}

const reasonOf = ({ reason = '', message = '' }: z.infer<typeof ObservedCondition>): Reason => ({ reason, message });

/** What the gateway's controller says, else what every client is told. */
function candidatesOf(
  candidates: readonly string[] = [],
  endpoint?: ObservedData<'GatewayServer'>['endpoint'],
): readonly string[] {
  if (candidates.length > 0) return candidates;
  const ports = endpoint?.port === undefined ? (endpoint?.ports ?? []) : [endpoint.port];
  const texts = (endpoint?.addresses ?? []).flatMap((address) => ports.map((port) => `${address}:${port}`));
  return texts.filter(isEndpoint);
}

/** The counters are the agent's: what they say per second comes with its samples. */
function asConnection(
  { value, latency, receivedBytes: _, sentBytes: __, ...rest }: ObservedData<'Connection'>,
  throughput: Throughput | undefined,
): ConnectionReport {
  const reported = Object.entries(rest).filter(([, one]) => one !== undefined);
  return {
    value: value ?? 'Unknown',
    ...(latency === undefined || latency === unknownLatency ? {} : { latency }),
    ...(Object.fromEntries(reported) as Omit<ConnectionReport, 'value' | 'latency'>),
    ...(throughput === undefined || value !== 'Connected' ? {} : { throughput }),
  };
}
