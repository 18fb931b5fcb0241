/** What keeps a virtual node from being there and taking pods. Pure. */
import type { Node } from '#shared/domain/kube-object.ts';
import {
  cordonedTaint,
  label,
  managedByShadowPod,
  noNodeReadyReason,
  virtualNodeTaint,
} from '#shared/domain/liqo-keys.ts';
import { isKeptFree } from '#shared/domain/node-taints.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import type { ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import type { Finding } from '../causes.ts';
import { conditionOf, isReady, labelOf, nameOf, type Rule, some, type View } from './rule.ts';

const isOriginal = (slice: ResourceSlice, cluster: string): boolean =>
  (slice.spec.consumerClusterID ?? cluster) === cluster && labelOf(slice, label.replicated) !== 'true';

const concerns = ({ all }: View, peer: string): boolean =>
  all.peer === undefined || all.clusters.length > 1 || all.peer === peer;

export const slices: Rule = (view) => {
  const { cluster, facts, kubectl } = view;
  return facts.slices
    .filter((slice) => isOriginal(slice, cluster) && concerns(view, slice.spec.providerClusterID ?? ''))
    .flatMap((slice): Finding[] => {
      const provider = slice.spec.providerClusterID ?? 'the provider';
      const conditions = slice.status?.conditions ?? [];
      const denied = conditions.find(({ status }) => status === 'Denied');
      if (denied?.reason === noNodeReadyReason) {
        return [
          {
            code: 'nothing_granted',
            at: provider,
            text: `${provider} grants the slice ${slice.metadata.name} of ${cluster} nothing: ${denied.message ?? 'none of its nodes is Ready'}`,
            evidence: [`ResourceSlice ${nameOf(slice)}: ${denied.type} is Denied, ${denied.reason}`],
            todo: `look at the nodes of ${provider}: \`kubectl get nodes\` there; it grants by itself once one is Ready and takes pods of guests`,
          },
        ];
      }
      if (denied !== undefined) {
        return [
          {
            code: 'policy_refuses',
            at: provider,
            text: `${provider} refuses the slice ${slice.metadata.name} of ${cluster}: ${denied.message ?? denied.reason ?? 'no reason is given'}`,
            evidence: [`ResourceSlice ${nameOf(slice)}: ${denied.type} is Denied, ${denied.reason ?? ''}`],
            todo: `ask for less (\`isthmus peer ${cluster} ${provider} --cpu … --memory …\`), or have ${provider} allow it: \`kubectl edit peeringpolicies\` there`,
          },
        ];
      }
      if (conditions.some(({ type, status }) => type === 'Resources' && status === 'Accepted')) return [];
      return [
        {
          code: 'slice_unanswered',
          at: provider,
          text: `${provider} has not answered the slice ${slice.metadata.name} of ${cluster}`,
          evidence: [
            `ResourceSlice ${nameOf(slice)} has ${conditions.length === 0 ? 'no condition' : conditions.map(({ type, status }) => `${type} ${status}`).join(', ')}`,
          ],
          todo: `\`${kubectl} --namespace ${slice.metadata.namespace} describe resourceslice ${slice.metadata.name}\`; its Events say what it waits for`,
        },
      ];
    });
};

const usual = new Set<string | undefined>([
  virtualNodeTaint.key,
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/network-unavailable',
  'node.kubernetes.io/memory-pressure',
  'node.kubernetes.io/disk-pressure',
  'node.kubernetes.io/pid-pressure',
]);

export const virtualNodes: Rule = (view) => {
  const { cluster, facts, kubectl } = view;
  const findings: Finding[] = [];
  for (const wanted of facts.status.virtualNodes.filter(({ spec }) => concerns(view, spec.clusterID))) {
    const { name } = wanted.metadata;
    const provider = wanted.spec.clusterID;
    const node = facts.virtualNodes.find(({ metadata }) => metadata.name === name);
    if (node === undefined) {
      if (wanted.spec.createNode === false) continue;
      findings.push({
        code: 'node_missing',
        at: cluster,
        text: `there is no Node ${name} in ${cluster} for what ${provider} granted`,
        evidence: [
          `VirtualNode ${nameOf(wanted)} wants one`,
          ...(wanted.status?.conditions ?? []).map(
            ({ type, status, message }) => `${type} is ${status}${message ? `: ${message}` : ''}`,
          ),
        ],
        todo: `\`${kubectl} --namespace ${wanted.metadata.namespace} describe virtualnode ${name}\`; its Events say what it waits for`,
      });
      continue;
    }
    const taints = node.spec?.taints ?? [];
    const cordon = taints.find(({ key }) => key === cordonedTaint.key);
    if (cordon !== undefined) {
      findings.push({
        code: 'provider_cordoned',
        at: provider,
        text: `${provider} takes no new pods of ${cluster}: node ${name} is cordoned by it`,
        evidence: [`node ${name} has the taint ${cordonedTaint.key}`],
        todo: `at the provider: \`isthmus uncordon tenant ${cluster} --kubeconfig KUBECONFIG-OF-${provider}\`, or \`isthmus uncordon resourceslice …\``,
      });
    }
    const foreign = taints.filter(
      ({ key, effect }) =>
        !usual.has(key) &&
        key !== cordonedTaint.key &&
        effect !== 'PreferNoSchedule' &&
        key !== 'node.kubernetes.io/unschedulable',
    );
    const [first] = foreign;
    if (node.spec?.unschedulable === true || first !== undefined) {
      const undo = first === undefined ? `uncordon ${name}` : `taint node ${name} ${first.key}:${first.effect}-`;
      findings.push({
        code: 'node_closed',
        at: cluster,
        text: `node ${name} takes no pods: ${first === undefined ? 'it is cordoned' : `it has the taint ${some(foreign.map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`))}`}`,
        evidence: [`spec of Node ${name}`],
        todo: `\`${kubectl} ${undo}\`, or tolerate it in the pods`,
      });
    }
    const hard = wanted.spec.resourceQuota?.hard ?? {};
    const nothing = noneOf(hard);
    if (nothing.length > 0) {
      findings.push({
        code: 'nothing_granted',
        at: provider,
        text: `${provider} grants ${cluster} no ${nothing.join(', no ')}: it had no room when it was asked last`,
        evidence: [
          `VirtualNode ${nameOf(wanted)}: ${Object.entries(hard)
            .map(([resource, amount]) => `${resource} ${amount}`)
            .join(', ')}`,
        ],
        todo: `make room at ${provider} (nodes that are Ready and not cordoned), then ask for another amount: \`isthmus peer ${cluster} ${provider} --cpu …\``,
      });
      continue;
    }
    const ready = conditionOf(node, 'Ready');
    if (!isReady(node)) {
      findings.push({
        code: 'node_not_ready',
        at: cluster,
        text: `node ${name} of ${cluster} is not Ready: ${ready?.message ?? 'nothing has been heard of it'}`,
        evidence: (node.status?.conditions ?? [])
          .filter(({ type, status }) => (type === 'Ready') !== (status === 'True'))
          .map(({ type, status, reason, message }) => `${type} ${status}: ${reason ?? ''} ${message ?? ''}`.trim()),
        todo: `\`${kubectl} describe node ${name}\`, and \`isthmus doctor\` with the kubeconfig of ${provider} as well`,
      });
    }
  }
  return findings;
};

type Amounts = Readonly<Record<string, unknown>>;
/** What a node cannot do without, and there is none of. */
const noneOf = (amounts: Amounts): string[] =>
  ['cpu', 'memory', 'pods'].filter((resource) => Number.parseFloat(String(amounts[resource])) === 0);

const closedBy = ({ spec }: Node): string =>
  spec?.unschedulable === true
    ? 'it is cordoned'
    : `taint ${some((spec?.taints ?? []).map(({ key, value, effect }) => `${key}${value ? `=${value}` : ''}:${effect}`))}`;

/**
 * Seen at the provider: no node takes what is new. What any policy lets guests tolerate keeps none away. Closed nodes may be meant, so that a
 * grant that fell to nothing or a guest without a node has to bear it out.
 */
export const openNodes: Rule = ({ cluster, facts, kubectl }) => {
  const ready = facts.nodes.filter(isReady);
  const [first] = ready;
  const closed = (node: Node): boolean => isKeptFree(node, facts.guestTolerations);
  if (first === undefined || facts.tenants.length === 0 || !ready.every(closed)) return [];
  const isBorneOut =
    facts.status.quotas.some(({ spec }) => noneOf(spec.resources ?? {}).length > 0) ||
    facts.pods.some(
      (pod) =>
        labelOf(pod, label.managedBy) === managedByShadowPod && conditionOf(pod, 'PodScheduled')?.status === 'False',
    );
  if (!isBorneOut) return [];
  const { name } = first.metadata;
  const taint = first.spec?.taints?.find((one) => closed({ ...first, spec: { taints: [one] } }));
  const undo =
    first.spec?.unschedulable === true || taint === undefined
      ? `uncordon ${name}`
      : `taint node ${name} ${taint.key}:${taint.effect}-`;
  return [
    {
      code: 'no_open_node',
      at: cluster,
      text: `no node of ${cluster} takes new pods of its consumers: ${ready.length === 1 ? `${name} is the only one` : `all ${ready.length} are closed`}`,
      evidence: ready.slice(0, 3).map((node) => `node ${node.metadata.name}: ${closedBy(node)}`),
      todo: `\`${kubectl} ${undo}\`, or add a node; docs/providing.md says how a policy lets consumers tolerate a taint`,
    },
  ];
};

/** Seen at the provider: what a consumer asks of a Quota that has nothing left. */
export const quotas: Rule = (view) => {
  const { cluster, facts } = view;
  return facts.status.quotas.flatMap((quota: Quota): Finding[] => {
    const consumer = labelOf(quota, label.remoteClusterId) ?? '';
    if (quota.spec.cordoned !== true || !concerns(view, consumer)) return [];
    const tenant = facts.tenants.find(({ spec }) => spec.clusterID === consumer);
    if (tenant?.spec.tenantCondition === undefined || tenant.spec.tenantCondition === 'Active') return [];
    return [
      {
        code: 'provider_cordoned',
        at: cluster,
        text: `${cluster} takes no new pods of ${consumer}: its Tenant is ${tenant.spec.tenantCondition}`,
        evidence: [`Quota ${nameOf(quota)} is cordoned`],
        todo: `\`isthmus uncordon tenant ${consumer} ${view.kubectl.replace(/^kubectl /, '')}\``,
      },
    ];
  });
};
