/** Why pods of offloaded namespaces, or of those that should be, do not run. Pure. */

import { pullTroubleOf } from '#cli/install/image-pull.ts';
import { explainPod } from '#cli/offload/explain-pod.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { label, managedByShadowPod, virtualNodeTaint } from '#shared/domain/liqo-keys.ts';
import { matchesTerms } from '#shared/domain/node-selector.ts';
import type { Finding } from '../causes.ts';
import { conditionOf, isReady, labelOf, nameOf, type Rule, some, type View } from './rule.ts';

export const dns: Rule = ({ cluster, facts, kubectl }) => {
  if (facts.dns === undefined || facts.dns.ready > 0) return [];
  return [
    {
      code: 'dns_down',
      at: cluster,
      text: `the DNS of ${cluster} has no pod that answers: names of Services do not resolve`,
      evidence: [`Service kube-system/kube-dns has no ready endpoint: ${facts.dns.why}`],
      todo: `\`${kubectl} --namespace kube-system get deployments,pods --selector k8s-app=kube-dns\`, and bring it back (\`scale\`, \`rollout restart\`)`,
    },
  ];
};

export const namespaces: Rule = ({ cluster, facts, kubectl }) =>
  facts.status.offloadings.flatMap((offloading): Finding[] => {
    const { namespace = '' } = offloading.metadata;
    const phase = offloading.status?.offloadingPhase;
    const describe = `\`${kubectl} --namespace ${namespace} describe namespaceoffloading offloading\``;
    if (phase === 'NoClusterSelected' && facts.status.virtualNodes.length > 0) {
      return [
        {
          code: 'selector_matches_nothing',
          at: cluster,
          text: `the clusterSelector of namespace ${namespace} matches none of the virtual nodes of ${cluster}`,
          evidence: [
            `NamespaceOffloading ${namespace}/offloading is NoClusterSelected: ${JSON.stringify(offloading.spec?.clusterSelector ?? {})}`,
            ...facts.virtualNodes
              .slice(0, 3)
              .map((node) => `labels of ${node.metadata.name}: ${JSON.stringify(node.metadata.labels ?? {})}`),
          ],
          todo: `offload it again with a selector that matches: \`isthmus offload namespace ${namespace} ${kubectl.replace(/^kubectl /, '')} --selector …\`, or label the provider`,
        },
      ];
    }
    if (phase !== 'SomeFailed' && phase !== 'AllFailed') return [];
    const conditions = Object.entries(offloading.status?.remoteNamespacesConditions ?? {}).flatMap(([provider, all]) =>
      all
        .filter(({ type, status }) => type === 'Ready' && status !== 'True')
        .map(({ reason, message }) => `${provider}: ${reason ?? ''} ${message ?? ''}`.trim()),
    );
    return [
      {
        code: 'namespace_refused',
        at: cluster,
        text: `namespace ${namespace} could not be made at the provider: ${conditions[0] ?? phase}`,
        evidence: [`NamespaceOffloading ${namespace}/offloading is ${phase}`, ...conditions],
        todo: `${describe}; where a namespace of that name is in the way, offload with another name strategy`,
      },
    ];
  });

type Class = Pick<Finding, 'code' | 'todo'>;

const configReasons = new Set(['CreateContainerConfigError', 'CreateContainerError', 'InvalidImageName']);

/** Of a pod that is bound to a virtual node, or of one that a consumer has here. */
function classOfBound(pod: Pod, view: View): Class | undefined {
  const { kubectl } = view;
  const { namespace, name } = pod.metadata;
  const describe = `\`${kubectl} --namespace ${namespace} describe pod ${name}\``;
  const { reason = '', message = '' } = pod.status ?? {};
  if (reason === 'OffloadingRefused' || reason === 'OffloadingBackOff') {
    if (/quota_exceeded|Quota|left of what|more than is left/i.test(message) && !/exceeded quota:/.test(message))
      return {
        code: 'quota_used_up',
        todo: 'ask for more with `isthmus peer CONSUMER PROVIDER --cpu … --memory …`, or lower the requests of the pods',
      };
    if (/cordoned/.test(message))
      return {
        code: 'provider_cordoned',
        todo: 'have the provider uncordon it: `isthmus uncordon tenant CONSUMER` there',
      };
    return {
      code: 'pod_refused',
      todo: `change what the message names in the pod, or have the provider allow it (docs/guests.md); ${describe}`,
    };
  }
  if (pullTroubleOf(pod) !== undefined)
    return {
      code: 'pod_image',
      todo: `name an image that nodes of the provider can pull, or give them the credentials (imagePullSecrets); ${describe}`,
    };
  for (const { state, restartCount } of [
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.containerStatuses ?? []),
  ]) {
    const why = state?.waiting?.reason ?? '';
    if (configReasons.has(why))
      return {
        code: 'pod_config',
        todo: `make what the message names, in namespace ${namespace} of the consumer; ${describe}`,
      };
    if (why === 'CrashLoopBackOff')
      return {
        code: 'pod_crashes',
        todo: `\`${kubectl} --namespace ${namespace} logs ${name} --previous\` (${restartCount} restarts)`,
      };
  }
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.status === 'False')
    return {
      code: 'pod_unschedulable',
      todo: `make room at the provider, or change what the message names; ${describe}`,
    };
  return undefined;
}

/** No node of the cluster itself is one that the pod asks for, and a virtual node is. */
function wantsVirtual({ spec }: Pod, { facts }: View): boolean {
  const labels = Object.entries(spec?.nodeSelector ?? {});
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (labels.length === 0 && required === undefined) return false;
  const fits = ({ metadata }: Node): boolean =>
    labels.every(([key, value]) => metadata.labels?.[key] === value) &&
    (required === undefined ||
      matchesTerms({ name: metadata.name, labels: metadata.labels ?? {} }, required.nodeSelectorTerms));
  return facts.virtualNodes.some(fits) && !facts.nodes.some(fits);
}

function classOfUnbound(pod: Pod, view: View): Class | undefined {
  const { facts, kubectl } = view;
  const { namespace = '', name } = pod.metadata;
  const scheduled = conditionOf(pod, 'PodScheduled');
  const said = scheduled?.message ?? '';
  const offloading = facts.status.offloadings.find(({ metadata }) => metadata.namespace === namespace);
  const describe = `\`${kubectl} --namespace ${namespace} describe pod ${name}\``;
  if (offloading === undefined) {
    if (scheduled?.status !== 'False' || !wantsVirtual(pod, view)) return undefined;
    return {
      code: 'namespace_not_offloaded',
      todo: `\`isthmus offload namespace ${namespace} ${kubectl.replace(/^kubectl /, '')}\`, then delete the pods that wait: their controllers make them again`,
    };
  }
  const tolerated = pod.spec?.tolerations?.some(
    ({ key, operator }) => key === virtualNodeTaint.key || (!key && operator === 'Exists'),
  );
  if (tolerated !== true && offloading.spec?.podOffloadingStrategy !== 'Local' && scheduled?.status === 'False')
    return {
      code: 'pod_too_old',
      todo: `\`${kubectl} --namespace ${namespace} delete pod ${name}\`; its controller makes it again`,
    };
  if (scheduled?.status !== 'False') return undefined;
  if (/Insufficient/.test(said))
    return {
      code: 'quota_used_up',
      todo: `ask for more with \`isthmus peer CONSUMER PROVIDER --cpu … --memory …\`, or lower the requests of the pods; ${describe}`,
    };
  return { code: 'pod_unschedulable', todo: describe };
}

const over = new Set<string | undefined>(['Succeeded']);

/** One finding for each cause, with the pods that have it. */
export const pods: Rule = (view) => {
  const { cluster, facts } = view;
  const groups = new Map<string, { readonly found: Class; readonly pods: Pod[] }>();
  for (const pod of facts.pods) {
    if (over.has(pod.status?.phase) || pod.metadata.deletionTimestamp !== undefined || isReady(pod)) continue;
    // Told where the pod is the consumer's own, when that cluster is looked at as well.
    const isGuests = labelOf(pod, label.managedBy) === managedByShadowPod;
    if (isGuests && view.other !== undefined) continue;
    const found = pod.spec?.nodeName === undefined && !isGuests ? classOfUnbound(pod, view) : classOfBound(pod, view);
    if (found === undefined) continue;
    const group = groups.get(found.code) ?? { found, pods: [] };
    group.pods.push(pod);
    groups.set(found.code, group);
  }
  return [...groups.values()].map(({ found, pods: all }): Finding => {
    const stories = all.slice(0, 3).map((pod) => storyOf(pod, view));
    return {
      ...found,
      at: cluster,
      text: `${all.length === 1 ? 'pod' : `${all.length} pods:`} ${some(all.map(nameOf))}: ${stories[0] ?? ''}`,
      evidence: all.slice(0, 3).map((pod, i) => `${nameOf(pod)}: ${stories[i]}`),
    };
  });
};

function storyOf(pod: Pod, { facts }: View): string {
  const { nodeName } = pod.spec ?? {};
  const { waitsFor, why } = explainPod({
    pod,
    node: [...facts.virtualNodes, ...facts.nodes].find(({ metadata }) => metadata.name === nodeName),
    offloading: facts.status.offloadings.find(({ metadata }) => metadata.namespace === pod.metadata.namespace),
    virtualNodes: facts.virtualNodes,
  });
  return waitsFor ?? pod.status?.message ?? why;
}
