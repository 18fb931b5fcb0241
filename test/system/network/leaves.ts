/** A third cluster beside the two, so that rome lies between its providers: pods of rome at milan and at turin call each other through it. */
import { readFile } from 'node:fs/promises';
import type { KubeApi } from '#kube/model/types.ts';
import { moveAddress } from '#shared/domain/cidr.ts';
import { endpointSlices, pods } from '#shared/domain/core-kinds.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { NetnsFixture } from '#test/harness/netns.ts';
import { must } from '#test/harness/program.ts';
import { isReady, patience, type Stage } from '../whole-clusters/stage.ts';
import { type Place, podPlace } from './test-pods.ts';

export const leafName = 'turin';

export interface Leaf {
  readonly api: KubeApi;
  readonly place: Place;
}

/** A pod of rome that runs at the provider whose API this is; with a server of ours beside the one it runs. */
export async function leafOf(
  { api, world: clusters }: { readonly api: KubeApi; readonly world: NetnsFixture },
  [namespace, name]: readonly [string, string],
  port: number,
): Promise<Leaf> {
  const twin = await eventually(
    `${name} runs there`,
    async () => {
      const found = await api.get(pods, { namespace: `${namespace}-rome`, name });
      return found && isReady(found) ? found : undefined;
    },
    patience,
  );
  const place = podPlace(clusters, twin);
  await place.netns.serve(port);
  return { api, place };
}

export const loginAt = async ({ world: clusters, login }: Stage, cluster: string): Promise<KubeApi> =>
  login(await readFile(clusters.cluster(cluster).kubeconfigPath, 'utf8'));

/** By which rome exposes one of its offloaded pods to its other peers. */
export const exposedAs = (stage: Stage, [namespace, name]: readonly [string, string]): Promise<string> =>
  eventually(
    `rome has an address for pod ${name}`,
    async () => (await stage.api('rome').get(networkKinds.ips, { namespace, name }))?.status?.ip,
    patience,
  );

/** What the cluster of this leaf calls an address that rome exposes. */
export async function calledAt({ api }: Leaf, exposed: string): Promise<string> {
  const [configuration] = await api.list(networkKinds.configurations, { namespace: 'liqo-tenant-rome' });
  const [real, view] = [configuration?.spec.remote.cidr, configuration?.status?.remote?.cidr].map(
    (cidr) => cidr?.external?.[0] ?? '',
  );
  const moved = moveAddress(exposed, real ?? '', view ?? '');
  if (moved === undefined) throw new Error(`${exposed} is not in ${real}`);
  return moved;
}

/** The addresses that a Service of rome has there, once it has this one. */
export const servedBy = (
  { api }: Leaf,
  namespace: string,
  service: string,
  address: string,
): Promise<readonly string[]> =>
  eventually(
    `Service ${service} leads to ${address}`,
    async () => {
      const slices = await api.list(endpointSlices, {
        namespace: `${namespace}-rome`,
        labelSelector: `kubernetes.io/service-name=${service}`,
      });
      const all = slices.flatMap(({ endpoints }) => endpoints ?? []).flatMap(({ addresses }) => addresses);
      return all.includes(address) ? all : undefined;
    },
    patience,
  );

/** `seen`: the address that the server saw, which the test program answers at /remote. */
export async function answerTo({ place }: Leaf, url: string): Promise<string> {
  const line = ['nsenter', '-t', String(place.netns.pid), '-n', 'curl', '-sS', '-m', '3', url] as const;
  const [program, ...args] = line;
  return eventually(`${place.name} gets ${url}`, async () => (await must(program, args)).stdout.trim(), patience);
}

export const peerWithLeaf = ({ world: clusters }: Stage): Promise<string> =>
  clusters.mustIsthmus('peer', 'rome', leafName, '--cpu', '1', '--memory', '1Gi', '--pods', '10', '--wait');
