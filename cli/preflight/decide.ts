/** The checks before an installation, one rule each: from what was observed to what is to be said. Pure. */
import { findCni } from '#cli/platform/cni.ts';
import { oldestKubernetes, oldestMinor } from '#shared/domain/kubernetes-version.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { credentials } from './credentials.ts';
import { type CheckFacts, type Rule, stopOf } from './facts.ts';
import type { Finding } from './findings.ts';
import { apiUrl, gateways, ranges, webhooks } from './reachability.ts';

const minorOf = (version: string): number | undefined => {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  return major === '1' ? Number(minor) : undefined;
};

const version: Rule = ({ cluster }) => {
  const minor = minorOf(cluster.version);
  if (minor === undefined)
    return {
      check: 'version',
      outcome: 'unknown',
      text: `the API server calls itself ${cluster.version}; needed is ${oldestKubernetes} or newer`,
    };
  if (minor >= oldestMinor) return { check: 'version', outcome: 'ok', text: `Kubernetes ${cluster.version}` };
  return {
    check: 'version',
    outcome: 'stop',
    code: 'kubernetes_unsupported',
    text: `the API server is ${cluster.version}, needed is ${oldestKubernetes} or newer`,
    remedy: 'upgrade the cluster by its own means, for kubeadm with `kubeadm upgrade plan`; nothing else helps',
  };
};

const platform: Rule = ({ found: { profile, because } }) => [
  { check: 'platform', outcome: 'ok', text: `${profile.title} (${because})` },
  ...(profile.cautions ?? []).map((text): Finding => ({ check: 'platform', outcome: 'unknown', text })),
];

const nodes: Rule = ({ cluster }) => {
  const linux = cluster.nodes.filter(({ os }) => os !== 'windows');
  const windows = cluster.nodes.filter(({ os }) => os === 'windows').map(({ name }) => name);
  const other = linux.filter(({ arch }) => arch !== '' && arch !== 'amd64' && arch !== 'arm64');
  if (cluster.nodes.length === 0)
    return { check: 'nodes', outcome: 'unknown', text: 'the cluster has no node yet; the agent waits for one' };
  if (linux.length === 0) {
    return {
      check: 'nodes',
      outcome: 'stop',
      code: 'no_usable_node',
      text: `all nodes run Windows (${windows.join(', ')}); the agent and its node processes are for Linux`,
      remedy: 'add a Linux node to the cluster',
    };
  }
  if (other.length === linux.length) {
    return {
      check: 'nodes',
      outcome: 'stop',
      code: 'no_usable_node',
      text: `no Linux node is amd64 or arm64: ${other.map(({ name, arch }) => `${name} is ${arch}`).join(', ')}`,
      remedy: 'add a node of one of the two architectures',
    };
  }
  return [
    { check: 'nodes', outcome: 'ok', text: `${linux.length} Linux node${linux.length === 1 ? '' : 's'}` },
    ...(windows.length === 0
      ? []
      : [
          {
            check: 'nodes',
            outcome: 'adapted',
            text: `nothing of Isthmus runs on the Windows node${windows.length === 1 ? '' : 's'} ${windows.join(', ')}: pods there reach no peer, and pods for Windows are not offloaded`,
          } as const,
        ]),
  ];
};

/** `vxlan` that takes its tunnel from routes, and nf_tables with NAT: older kernels lack one of them. */
const oldestKernel = [4, 18] as const;
/** From here on WireGuard is part of the kernel. */
const wireGuardKernel = [5, 6] as const;

const atLeast = (kernel: string, [major, minor]: readonly [number, number]): boolean | undefined => {
  const [, a, b] = /^(\d+)\.(\d+)/.exec(kernel) ?? [];
  if (a === undefined) return undefined;
  return Number(a) > major || (Number(a) === major && Number(b) >= minor);
};

const kernel: Rule = ({ cluster, ranges: wanted, kubectl }) => {
  const check = 'kernel';
  if (wanted === undefined) return { check, outcome: 'ok', text: 'without a network of ours nodes need nothing' };
  const linux = cluster.nodes.filter(({ os }) => os !== 'windows');
  const old = linux.filter((node) => atLeast(node.kernel, oldestKernel) === false);
  const [first] = old;
  if (first !== undefined) {
    return {
      check,
      outcome: 'stop',
      code: 'no_usable_node',
      text: `needed is Linux ${oldestKernel.join('.')} or newer: ${old.map(({ name, kernel: release }) => `node ${name} has ${release}`).join(', ')}`,
      remedy: `update the kernel of each, or take the node out (\`${kubectl} delete node ${first.name}\`), or do without the network (--no-network)`,
    };
  }
  const without = linux.filter((node) => atLeast(node.kernel, wireGuardKernel) === false).map(({ name }) => name);
  return [
    ...(without.length === 0
      ? []
      : [
          {
            check,
            outcome: 'adapted',
            text: `no WireGuard in the kernel of ${without.join(', ')}: gateways there use wireguard-go, which is slower`,
          } as const,
        ]),
    {
      check,
      outcome: 'unknown',
      text: 'whether a node can load the modules vxlan, nf_tables and tun is known only once its node process runs there; the installation says what that process reports',
    },
  ];
};

const rights: Rule = ({ user, missingRights, kubectl }) => {
  const check = 'rights';
  if (missingRights.length === 0)
    return { check, outcome: 'ok', text: `${user || 'the user of the kubeconfig'} may install` };
  const some = missingRights.slice(0, 3).map(({ verb, resource }) => `${verb} ${resource}`);
  const more = missingRights.length - some.length;
  return {
    check,
    outcome: 'stop',
    code: 'kube_forbidden',
    text: `${user || 'the user of the kubeconfig'} may not ${some.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
    remedy: `use the kubeconfig of an administrator, or have one run \`${kubectl} create clusterrolebinding isthmus-installer --clusterrole=cluster-admin --user=${user || 'USER'}\``,
    detail: { missing: missingRights.map(({ verb, resource }) => `${verb} ${resource}`) },
  };
};

const agent: Rule = ({ agent: found }) => {
  const check = 'agent';
  if ('refusal' in found) return stopOf(check, found.refusal);
  if (found.clusterId === undefined) return { check, outcome: 'ok', text: 'nothing of Isthmus or Liqo is installed' };
  return {
    check,
    outcome: 'ok',
    text: `Isthmus is installed as ${found.clusterId}${found.image ? `, image ${found.image}` : ''}; it would be updated`,
  };
};

const podSecurity: Rule = ({ trials, ranges: wanted, kubectl }) => {
  const check = 'pod-security';
  if (wanted === undefined) return { check, outcome: 'ok', text: 'without a network of ours no pod is privileged' };
  if (trials === undefined) return { check, outcome: 'unknown', text: 'not tried, since rights are missing' };
  const { namespace, pod } = trials;
  if (namespace !== undefined) {
    return {
      check,
      outcome: 'stop',
      code: 'pod_security_refused',
      text: `a namespace for privileged pods is refused: ${namespace}`,
      remedy: `have the policy that says so leave out the namespaces ${systemNamespace} and liqo-tenant-*; \`${kubectl} get validatingwebhookconfigurations,validatingadmissionpolicies\` lists what may refuse`,
    };
  }
  if (pod === undefined) return { check, outcome: 'ok', text: 'privileged pods are accepted' };
  if (/violates PodSecurity/.test(pod)) {
    return {
      check,
      outcome: 'adapted',
      text: `the cluster holds namespaces without a label to a standard (${/PodSecurity "([^"]+)"/.exec(pod)?.[1] ?? 'not named'}): ${systemNamespace} and tenant namespaces are labelled for privileged pods`,
    };
  }
  return {
    check,
    outcome: 'unknown',
    text: `a privileged pod in the namespace default would be refused: ${pod}. Pods of the namespaces ${systemNamespace} and liqo-tenant-* must not be`,
  };
};

const cni: Rule = ({ cluster, ranges: wanted }) => {
  const check = 'cni';
  const found = findCni(cluster);
  if (wanted === undefined) return { check, outcome: 'ok', text: found?.name ?? 'not needed' };
  if (found === undefined)
    return {
      check,
      outcome: 'unknown',
      text: 'no DaemonSet of a CNI that is known; the node processes look at the files of each node',
    };
  const { name, because, settings, cautions } = found;
  return [
    { check, outcome: 'ok', text: `${name} (${because})${settings.length > 0 ? `: ${settings.join(', ')}` : ''}` },
    ...cautions.map((text): Finding => ({ check, outcome: 'unknown', text: `${name}: ${text}` })),
  ];
};

/** What the broker takes of a request's age (`request_expired`). */
const clockTolerance = 60_000;
/** The server tells whole seconds, and an answer takes a moment. */
const notable = 5_000;

const clock: Rule = ({ clockAheadMs: ahead }) => {
  const check = 'clock';
  if (ahead === undefined) return { check, outcome: 'unknown', text: 'the API server sends no Date' };
  const seconds = Math.round(Math.abs(ahead) / 1_000);
  const text = `the API server's clock is ${seconds} s ${ahead > 0 ? 'behind' : 'ahead of'} this machine's`;
  if (Math.abs(ahead) > clockTolerance) {
    return {
      check,
      outcome: 'stop',
      code: 'clock_skewed',
      text: `${text}; requests between agents and a broker that are further apart than ${clockTolerance / 1_000} s are refused`,
      remedy:
        'run `timedatectl set-ntp true` on the one that is wrong, the nodes of the control plane or this machine; `date -u` on each tells which',
    };
  }
  if (Math.abs(ahead) > notable)
    return { check, outcome: 'adapted', text: `${text}; up to ${clockTolerance / 1_000} s are tolerated` };
  return { check, outcome: 'ok', text: `less than ${notable / 1_000} s apart from this machine` };
};

const rules: readonly Rule[] = [
  version,
  platform,
  nodes,
  kernel,
  rights,
  agent,
  credentials,
  podSecurity,
  cni,
  ranges,
  apiUrl,
  gateways,
  webhooks,
  clock,
];

export const decide = (facts: CheckFacts): Finding[] => rules.flatMap((rule) => rule(facts));
