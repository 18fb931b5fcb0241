/**
 * Annotations by which network plugins, container runtimes and their plugins attach pods to other networks, give them addresses, devices, CPUs and roles in the
 * cloud, choose another runtime, and open the sandbox. Applications read annotations of any name by the downward API, so that a list of what is accepted would lose
 * what they need: listed are whole groups of what nodes obey, by the owner of the key. Pure.
 */

/** Each with all names below it: `nvidia.cdi.k8s.io/container.app` is of `cdi.k8s.io`, `cpu-quota.crio.io` is of `crio.io`. */
const domains: readonly string[] = [
  // Networks and addresses.
  ...[
    'cni.cncf.io',
    'multus-cni.io',
    'cni.projectcalico.org',
    'ovn.org',
    'ovn.kubernetes.io',
    'cilium.io',
    'antrea.io',
  ],
  ...['network.harvesterhci.io', 'spidernet.io', 'danm.io', 'danm.k8s.io', 'networkservicemesh.io'],
  // Networks, addresses, devices and roles of clouds.
  ...['networking.gke.io', 'devices.gke.io', 'vpc.amazonaws.com', 'iam.amazonaws.com', 'k8s.aliyun.com'],
  ...['tke.cloud.tencent.com'],
  // Devices: CDI with its vendors, and what plugins for devices obey.
  ...['cdi.k8s.io', 'nvidia.com', 'hami.io'],
  // Container runtimes and their plugins (NRI); classes of caches and disks of the node.
  ...['crio.io', 'cri-o.io', 'nri.io', 'containerd.io', 'rdt.resources.beta.kubernetes.io'],
  ...['blockio.resources.beta.kubernetes.io'],
];

/** Names the other way round, as the configuration of a container has them. */
const reversed: readonly string[] = [
  // CRI-O and containerd, which also pass them on; `io.kubernetes.cri.untrusted-workload` chooses the runtime.
  ...['io.kubernetes.cri-o', 'io.kubernetes.cri', 'io.kubernetes.runtime', 'io.containerd', 'io.containers'],
  // dockershim and cri-dockerd know containers by them.
  ...['io.kubernetes.container', 'io.kubernetes.docker', 'io.kubernetes.sandbox', 'io.kubernetes.pod'],
  // Sandboxes: Kata, and Clear Containers before it, gVisor, Firecracker, Hyper-V.
  ...['io.katacontainers', 'com.github.containers.virtcontainers', 'dev.gvisor', 'aws.firecracker', 'io.microsoft'],
  // runc and crun: handlers, hooks, a file of settings of CRIU on the node, properties of the container's unit.
  ...['run.oci', 'org.criu', 'org.systemd.property', 'org.opencontainers.runc', 'module.wasm', 'io.podman'],
  ...['io.nestybox'],
];

const isOf = (domain: string, name: string): boolean => name === domain || name.endsWith(`.${domain}`);
const isBelow = (group: string, key: string): boolean =>
  key.startsWith(group) && /^[./-]?$/.test(key.charAt(group.length));

/** Whether nodes may obey the annotation of this key. The case of letters does not count, as for the API server. */
export function isForNodes(key: string): boolean {
  const lower = key.toLowerCase();
  const [name = ''] = lower.split('/');
  return domains.some((domain) => isOf(domain, name)) || reversed.some((group) => isBelow(group, lower));
}
