/**
 * What the kernels of two linked clusters have, in every node and every gateway pod, with placeholders for values that are granted or drawn each time:
 * addresses of pods and of the overlay, external addresses, network identifiers, interfaces and their MACs.
 */
import type { KubeApi } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { isthmusNetworkAnnotation } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { Ground } from '../brokerless/ground.ts';
import { podPlace } from '../network/test-pods.ts';
import { clusterNames } from '../whole-clusters/stage.ts';
import { kernelTraces, type Traces, traceDifferences, waitUntilStable } from './traces.ts';

const gatewayPods = { labelSelector: 'networking.liqo.io/component=gateway' };

/** A node process may take 2 s until it puts right what it has just learned, and looks again every 2.5 s. */
const restMs = 3_000;

/** A link is up before everything that hangs on it is in its place. */
export const linkedAtRest = (ground: Ground): Promise<Traces> =>
  waitUntilStable('the kernels of the linked clusters', () => linkedTraces(ground), {
    withinMs: 30_000,
    everyMs: restMs,
  });

/** Waits until they have exactly this, and rejects with what differs. */
export async function linkedAs(ground: Ground, wanted: Traces): Promise<void> {
  await eventually(
    'the kernels to be those of the first time',
    async () => {
      const changed = traceDifferences(wanted, await linkedAtRest(ground));
      if (changed.length > 0) throw new Error(`\n${changed.join('\n')}`);
      return true;
    },
    { withinMs: 30_000 },
  );
}

async function linkedTraces(ground: Ground): Promise<Traces> {
  const ofClusters = clusterNames.map(async (cluster) => {
    const api = ground.stage.api(cluster);
    const name = await namesOf(api);
    const gateways = (await api.list(pods, gatewayPods)).map((pod) => podPlace(ground.netns, pod));
    const nodes = ground.nodes(cluster);
    const parts = [
      ...nodes.map(async ({ name: of, netns }) => [`node ${of}`, await kernelTraces(netns)] as const),
      ...gateways.map(async ({ netns }, at) => [`gateway ${at + 1} of ${cluster}`, await kernelTraces(netns)] as const),
    ];
    return (await Promise.all(parts)).flatMap(([of, traces]) =>
      kept.map((what): [string, string] => {
        const lines = named(traces[what] ?? '', name);
        // Rules are tried in their order.
        return [`${of}, ${what}`, (what === 'rules' || what === 'nft' ? lines : lines.sort()).join('\n')];
      }),
    );
  });
  return Object.fromEntries((await Promise.all(ofClusters)).flat());
}

/** Pods come with IPv6 addresses by chance, and we have no rules for IPv6. */
const kept = ['links', 'addresses', 'rules', 'routes', 'neighbours', 'nft'] as const;

type Name = readonly [pattern: RegExp, name: string];

const exactly = (text: string): RegExp => new RegExp(`(?<![\\w.])${text.replaceAll('.', '\\.')}(?!\\w|\\.\\d)`, 'g');
const overlayMac = (ip: string): string =>
  ['02:69', ...ip.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))].join(':');

async function namesOf(api: KubeApi): Promise<Name[]> {
  const [fabrics, ips] = await Promise.all([api.list(networkKinds.internalFabrics), api.list(networkKinds.ips)]);
  return [
    ...fabrics.flatMap(({ spec, metadata }): Name[] => {
      const { ip } = spec.interface.gateway;
      const vni = metadata.annotations?.[isthmusNetworkAnnotation.vni] ?? 'none';
      return [
        [exactly(spec.gatewayIP), 'GATEWAY'],
        [exactly(ip), 'OVERLAY'],
        [exactly(overlayMac(ip)), 'OVERLAY-MAC'],
        [exactly(vni), 'VNI'],
        // nft writes no zeros in front.
        [exactly(`0x${Number(vni).toString(16)}`), 'VNI'],
      ];
    }),
    ...ips.map(({ metadata, status }): Name => [exactly(status?.ip ?? 'none'), `IP-OF-${metadata.name}`]),
    [/\b(?!02:69)([0-9a-f]{2}:){5}[0-9a-f]{2}\b/g, 'MAC'],
  ];
}

const isOfCables = (line: string): boolean => line.includes('"veth') || line.includes('"fe80:');

function named(text: string, names: readonly Name[]): string[] {
  const renamed = names.reduce((all, [pattern, name]) => all.replaceAll(pattern, name), ownTables(text));
  return renamed
    .split('\n')
    .filter((line) => !isOfCables(line))
    .map(sortedElements);
}

/** Of a ruleset; any other text stays as it is. kube-proxy names chains after addresses. */
const ownTables = (text: string): string =>
  text
    .split(/^(?=table )/m)
    .filter((table) => !/^table /.test(table) || /^table \w+ isthmus /.test(table))
    .map((table) => table.replaceAll(/,\s+/g, ', '))
    .join('');

/** Sets and maps come in the order of the addresses that were granted. */
const sortedElements = (line: string): string =>
  line.replace(/\{ ([^{}]+) \}/, (_, inside: string) => `{ ${inside.split(', ').sort().join(', ')} }`);
