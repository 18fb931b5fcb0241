/** How each daemon of a cluster is started: its command line, and the variables of its process. */
import type { Component } from './cluster-state.ts';
import {
  apiServerArgs,
  type ControlPlane,
  controllerManagerArgs,
  etcdArgs,
  schedulerArgs,
  schedulerConfig,
} from './control-plane.ts';
import { inNode, kubeletArgs, proxyArgs } from './node-config.ts';
import { type ClusterSpec, type NodeSpec, nodeAddress, usualGcPercent } from './spec.ts';
import { loopboxArgs } from './storage-addons.ts';

/** The control plane as the daemons see it (`inside`) or as the host's files lie. */
export function controlPlaneOf(spec: ClusterSpec, dir: string): ControlPlane {
  const [first] = spec.nodes;
  return {
    name: spec.name,
    dir,
    address: first?.ip ?? '',
    ...(first === undefined ? {} : { insideAddress: nodeAddress(first) }),
    port: 6443,
    etcdUrl: 'unix:///run/etcd.sock',
    serviceCidr: spec.serviceCidr,
    serviceIp: spec.serviceIp,
  };
}

export function commandLine(slot: number, spec: ClusterSpec, node: NodeSpec, component: Component): readonly string[] {
  const plane = controlPlaneOf(spec, inNode.cluster);
  const usual = `${inNode.bin}/kubebox`;
  const kubebox = spec.kubernetes === undefined ? usual : `${inNode.cluster}/kubebox`;
  const commands: Record<Component, () => readonly string[]> = {
    etcd: () => [usual, ...etcdArgs(plane)],
    'kube-apiserver': () => [kubebox, ...apiServerArgs(plane, spec.apiServerFlags)],
    // Node ranges are fixed beforehand, hence no allocation by the controller manager.
    'kube-controller-manager': () => [kubebox, ...controllerManagerArgs(plane, [`--cluster-cidr=${spec.podCidr}`])],
    'kube-scheduler': () => [kubebox, ...schedulerArgs(schedulerConfig(plane))],
    containerd: () => ['containerd', `--config=${inNode.node}/containerd.toml`],
    kubelet: () => [kubebox, ...kubeletArgs(node)],
    'kube-proxy': () => [kubebox, ...proxyArgs],
    loopbox: () => [`${inNode.cluster}/loopbox`, ...loopboxArgs(slot, spec, node)],
  };
  return commands[component]();
}

const ofControlPlane: readonly Component[] = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

export const variables = (
  { gcPercent = usualGcPercent }: ClusterSpec,
  component: Component,
): Readonly<Record<string, string>> => ({
  GOGC: String(ofControlPlane.includes(component) ? gcPercent : usualGcPercent),
});
