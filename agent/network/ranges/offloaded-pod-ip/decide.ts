/**
 * The IP by which pods at one peer reach a pod that this cluster has offloaded to another (docs/design/networking.md#how-does-a-leaf-reach-another-leaf-through-a-hub), and by which that
 * pod is seen when it calls them. Only a cluster with two links or more can be in between. Pure.
 */
import type { Applied } from '#kube/model/types.ts';
import { containsRange, parseAddress, parseCidr } from '#shared/domain/cidr.ts';
import { apiVersionOf, type Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkLabel } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

/** What this cluster calls the pods of its peers; empty where there are not two of them. */
export function viewsBetweenPeers(configurations: readonly Configuration[]): readonly string[] {
  const linked = configurations.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const peers = new Set(linked.map(({ metadata }) => metadata.labels?.[label.remoteClusterId] ?? ''));
  return peers.size < 2 ? [] : linked.flatMap(({ status }) => status?.remote?.cidr.pod ?? []);
}

export type Action =
  | { readonly do: 'nothing' }
  | { readonly do: 'apply'; readonly ip: Applied<Ip> }
  /** What is wanted in its place is made when it is gone. */
  | { readonly do: 'delete' }
  | { readonly do: 'tell'; readonly message: string };

/** `pod` and `ip` have the same name; an IP with another owner stays as it is. */
export function decide(pod: Pod | undefined, ip: Ip | undefined, views: readonly string[]): Action {
  if (ip?.metadata.deletionTimestamp !== undefined) return { do: 'nothing' };
  const address = addressOf(pod, views);
  const ours = ip === undefined || isOfPod(ip);
  if (pod === undefined || address === undefined) return ip && ours ? { do: 'delete' } : { do: 'nothing' };
  if (ip === undefined)
    return pod.metadata.deletionTimestamp === undefined
      ? { do: 'apply', ip: buildPodIp(pod, address) }
      : { do: 'nothing' };
  if (ip.spec.ip === address && (!ours || isOwnedBy(ip, pod))) return { do: 'nothing' };
  if (ours) return { do: 'delete' };
  const { namespace, name } = ip.metadata;
  const message = `IP ${namespace}/${name} was not made by this agent, and is for ${ip.spec.ip}: until it is renamed or deleted, pods at other peers do not reach this one`;
  return { do: 'tell', message };
}

/** Undefined: none that only this cluster can lead to. */
function addressOf(pod: Pod | undefined, views: readonly string[]): string | undefined {
  const { podIP, phase } = pod?.status ?? {};
  if (podIP === undefined || phase === 'Failed' || phase === 'Succeeded') return undefined;
  const address = parseAddress(podIP);
  const isThere = (view: string): boolean => {
    const range = parseCidr(view);
    return address !== undefined && range !== undefined && containsRange(range, { base: address, length: 32 });
  };
  return views.some(isThere) ? podIP : undefined;
}

export const isOfPod = ({ metadata }: Ip): boolean =>
  metadata.labels?.[label.managed] === 'true' && metadata.labels[networkLabel.podName] !== undefined;

const isOwnedBy = (ip: Ip, pod: Pod): boolean =>
  ip.metadata.ownerReferences?.some(({ uid }) => uid === pod.metadata.uid) ?? false;

/** Goes with the pod, even while no agent runs. */
function buildPodIp({ metadata }: Pod, address: string): Applied<Ip> {
  const { name, namespace = '', uid = '' } = metadata;
  return {
    apiVersion: apiVersionOf(networkKinds.ips),
    kind: networkKinds.ips.kind,
    metadata: {
      name,
      namespace,
      labels: {
        [label.managed]: 'true',
        [networkLabel.podName]: labelValue(name),
        [networkLabel.podNamespace]: namespace,
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }],
    },
    spec: { ip: address },
  };
}

/** Names of pods may be longer than labels, and end in a dot or dash where they are cut. */
const labelValue = (name: string): string => name.slice(0, 63).replace(/[-.]+$/, '');
