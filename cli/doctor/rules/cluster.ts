/** What is wrong with a cluster before anything of Isthmus in it is looked at. Pure. */
import { liqoManagerName } from '#cli/network-test/side.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import type { Finding } from '../causes.ts';
import type { DoctorFacts, Looked } from '../facts.ts';
import { conditionOf, isReady, nameOf, type Rule, some } from './rule.ts';

/** Of the broker and of tokens: what is further apart is refused. */
const clockToleranceMs = 60_000;

/** Also of clusters that did not answer. */
export function silence({ cluster, server, kubectl, silent, installed, unread, facts }: Looked): Finding[] {
  const at = cluster;
  if (silent !== undefined) {
    if (silent.code === 'kube_unauthorized') {
      return [
        {
          code: 'kubeconfig_refused',
          at,
          text: `the API server at ${server} does not accept the credentials of the kubeconfig`,
          evidence: [silent.message],
          todo: `get a new kubeconfig from the administrator of the cluster; \`${kubectl} auth whoami\` tells whether it works`,
        },
      ];
    }
    return [
      {
        code: 'cluster_silent',
        at,
        text: `the API server at ${server} does not answer`,
        evidence: [silent.message],
        todo: `\`${kubectl} get --raw /readyz\` from this machine; then look at the API server itself, and at what stands between`,
      },
    ];
  }
  const forbidden = unread.filter(({ code }) => code === 'kube_forbidden');
  const [first] = forbidden;
  const findings: Finding[] = [];
  if (first !== undefined) {
    findings.push({
      code: 'looking_forbidden',
      at,
      text: `the user of the kubeconfig may not read ${some(forbidden.map(({ what }) => what))}`,
      evidence: forbidden.slice(0, 3).map(({ message }) => message),
      todo: `use the kubeconfig of an administrator; \`${kubectl} auth can-i --list\` says what this one may do`,
    });
  }
  const late = unread.filter(({ code }) => code !== 'kube_forbidden');
  if (late.length > 0) {
    findings.push({
      code: 'partly_read',
      at,
      text: `${some(late.map(({ what }) => what))} could not be read`,
      evidence: late.slice(0, 3).map(({ message }) => message),
      todo: `run doctor again with a longer --timeout; \`${kubectl} get --raw /readyz?verbose\` says how the API server is`,
    });
  }
  if (!installed && facts === undefined) {
    findings.push({
      code: 'not_installed',
      at,
      text: `Isthmus is not installed in the cluster at ${server}`,
      evidence: [`there is no ConfigMap liqo-clusterid-configmap in namespace ${systemNamespace}`],
      todo: `\`isthmus join NAME ${kubectl.replace(/^kubectl /, '')}\`, or \`isthmus install\` without a broker`,
    });
  }
  return findings;
}

/** What only both ends together show. */
export function together({ clusters }: DoctorFacts): Finding[] {
  const [a, b] = clusters;
  if (a?.facts === undefined || b?.facts === undefined) return [];
  if (a.cluster === b.cluster && a.server !== b.server) {
    return [
      {
        code: 'same_cluster_id',
        at: b.cluster,
        text: `the clusters at ${a.server} and ${b.server} are both called ${a.cluster}`,
        evidence: [`ConfigMap ${systemNamespace}/liqo-clusterid-configmap of each`],
        todo: `take one of them out (\`isthmus uninstall\`) and join it under another name`,
      },
    ];
  }
  return [];
}

const seconds = (ms: number): number => Math.round(Math.abs(ms) / 1_000);

export const clock: Rule = ({ cluster, facts, other }) => {
  const mine = facts.clockAheadMs;
  if (mine === undefined || Math.abs(mine) <= clockToleranceMs) return [];
  const theirs = other?.facts.clockAheadMs;
  const alsoThere = theirs !== undefined && Math.abs(theirs - mine) <= clockToleranceMs;
  const wrong = alsoThere ? 'this machine, since both clusters agree,' : `the API server of ${cluster} or this machine`;
  return [
    {
      code: 'clock_wrong',
      at: alsoThere ? 'this machine' : cluster,
      text: `the clock of ${wrong} is wrong: they are ${seconds(mine)} s apart`,
      evidence: [
        `the API server's Date is ${seconds(mine)} s ${mine > 0 ? 'behind' : 'ahead of'} this machine's clock`,
        ...(alsoThere
          ? [`that of ${other?.cluster} is ${seconds(theirs)} s ${theirs > 0 ? 'behind' : 'ahead of'} it`]
          : []),
      ],
      todo: 'compare `date -u` on this machine and on the nodes of the control plane, and run `timedatectl set-ntp true` on the one that is wrong',
    },
  ];
};

const pressures = ['DiskPressure', 'MemoryPressure', 'PIDPressure'] as const;

export const nodes: Rule = ({ cluster, kubectl, facts }) => {
  const findings: Finding[] = [];
  const pressed = facts.nodes.flatMap((node) => {
    const found = pressures.filter((type) => conditionOf(node, type)?.status === 'True');
    return found.length === 0
      ? []
      : [{ node: node.metadata.name, found, said: conditionOf(node, found[0] ?? '')?.message }];
  });
  const [worst] = pressed;
  if (worst !== undefined) {
    findings.push({
      code: 'nodes_full',
      at: cluster,
      text: `${some(pressed.map(({ node, found }) => `node ${node} has ${found.join(' and ')}`))}`,
      evidence: pressed.slice(0, 3).map(({ node, said }) => `${node}: ${said ?? 'no message'}`),
      todo: `free what is short on ${worst.node} (images, logs, pods), or add a node; \`${kubectl} describe node ${worst.node}\` says how much is left`,
    });
  }
  const down = facts.nodes.filter((node) => !isReady(node));
  const [first] = down;
  if (first !== undefined || facts.nodes.length === 0) {
    findings.push({
      code: 'nodes_down',
      at: cluster,
      text:
        first === undefined
          ? `${cluster} has no node`
          : `${down.length} of ${facts.nodes.length} nodes of ${cluster} are not Ready: ${some(down.map(nameOf))}`,
      evidence: down
        .slice(0, 3)
        .map((node) => `${node.metadata.name}: ${conditionOf(node, 'Ready')?.message ?? 'no condition Ready'}`),
      todo:
        first === undefined
          ? 'add a node'
          : `\`${kubectl} describe node ${first.metadata.name}\`, then look at the kubelet there (\`journalctl -u kubelet\`)`,
    });
  }
  return findings;
};

export const crds: Rule = ({ cluster, facts, kubectl }) => {
  const [first] = facts.crds;
  if (first === undefined) return [];
  return [
    {
      code: 'crds_differ',
      at: cluster,
      text: `${facts.crds.length === 1 ? 'a CustomResourceDefinition is' : `${facts.crds.length} CustomResourceDefinitions are`} not those of this version: ${some(facts.crds.map(({ name }) => name))}`,
      evidence: facts.crds.slice(0, 5).map(({ name, how }) => `${name} ${how}`),
      todo: `apply those of this version: \`isthmus install ${kubectl.replace(/^kubectl /, '')} --cluster-id ${cluster}\`, or \`isthmus join ${cluster}\` where a broker is used; both update what is there`,
    },
  ];
};

export const secondAgent: Rule = ({ cluster, facts, kubectl }) => {
  const others = facts.agents.filter(
    ({ metadata }) =>
      !(metadata.namespace === systemNamespace && metadata.name === facts.status.agent?.metadata.name) &&
      (isthmusImage(metadata, facts) || metadata.name === liqoManagerName),
  );
  const [first] = others;
  if (first === undefined) return [];
  return [
    {
      code: 'second_agent',
      at: cluster,
      text: `besides ${systemNamespace}/${facts.status.agent?.metadata.name ?? 'no agent'}, Deployment ${nameOf(first)} works on the same objects`,
      evidence: others.map(
        (one) => `Deployment ${nameOf(one)} runs ${one.spec?.template.spec?.containers[0]?.image ?? 'no image'}`,
      ),
      todo: `remove the one that should not be there: \`${kubectl} --namespace ${first.metadata.namespace} delete deployment ${first.metadata.name}\``,
    },
  ];
};

/** What was stopped stays in the object's managed fields. Two that undo each other's changes write every 10 s or so. */
const claimedMs = 2 * 60_000;

/** A machine or a virtual kubelet of another program that reports as a virtual node of ours: the two undo each other's changes. */
export const claimedNodes: Rule = ({ cluster, facts, kubectl, all }) => {
  // Their times are of the API server's clock.
  const now = all.now - (facts.clockAheadMs ?? 0);
  const claims = facts.claimants.filter(({ at }) => now - at < claimedMs);
  const [first] = claims;
  if (first === undefined) return [];
  return [
    {
      code: 'second_agent',
      at: cluster,
      text: `besides the agent of ${cluster}, a ${first.manager} reports as the virtual node ${first.node}`,
      evidence: claims.map(
        ({ node, manager, at }) => `Node ${node}: ${manager} changed its status ${seconds(now - at)} s ago`,
      ),
      todo: `stop what runs under the name ${first.node}, or give it another one (\`--hostname-override\` of a kubelet); \`${kubectl} get node ${first.node} --output yaml --show-managed-fields\` shows what it writes`,
    },
  ];
};

/** By the image that the installed agent runs, with any tag. */
function isthmusImage(
  { name, namespace }: { readonly name: string; readonly namespace?: string },
  { agents, status }: Parameters<Rule>[0]['facts'],
): boolean {
  const bare = (image: string | undefined): string => (image ?? '').replace(/[@:][^/]*$/, '');
  const found = agents.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  const image = bare(found?.spec?.template.spec?.containers[0]?.image);
  return image !== '' && image === bare(status.agent?.spec?.template.spec?.containers[0]?.image);
}
