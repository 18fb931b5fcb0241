/** What is wrong with the processes of Isthmus in a cluster, and with what the API server lets them do. Pure. */
import { callersLabel } from '#cli/install/caller-manifests.ts';
import { pullRemedy, pullTroubleOf } from '#cli/install/image-pull.ts';
import { agentName } from '#cli/install/manifests.ts';
import type { CoreEvent } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { admission, label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName, networkLabel } from '#shared/domain/network-keys.ts';
import type { Finding } from '../causes.ts';
import { conditionOf, isReady, nameOf, type Rule, some, type View } from './rule.ts';

const flagsOf = (kubectl: string): string => kubectl.replace(/^kubectl /, '');
const reinstall = ({ cluster, kubectl }: View): string =>
  `\`isthmus install ${flagsOf(kubectl)} --cluster-id ${cluster}\` (or \`isthmus join ${cluster} ${flagsOf(kubectl)}\` with a broker) puts it back`;

export const rights: Rule = (view) => {
  const { cluster, facts } = view;
  if (facts.rights.length === 0) return [];
  return [
    {
      code: 'rights_removed',
      at: cluster,
      text: `the agent of ${cluster} lacks rights: ${some(facts.rights)}`,
      evidence: facts.rights.slice(0, 5),
      todo: reinstall(view),
    },
  ];
};

export const deployment: Rule = (view) => {
  const { cluster, facts, kubectl } = view;
  const { agent } = facts.status;
  if (agent === undefined) {
    return [
      {
        code: 'agent_missing',
        at: cluster,
        text: `Deployment ${systemNamespace}/${agentName} is not there`,
        evidence: [`the ConfigMap with the cluster ID ${cluster} is, so it was installed once`],
        todo: reinstall(view),
      },
    ];
  }
  if (agent.spec?.replicas !== 0) return [];
  return [
    {
      code: 'agent_stopped',
      at: cluster,
      text: `Deployment ${systemNamespace}/${agentName} is scaled to 0: nothing of Isthmus is done in ${cluster}`,
      evidence: ['spec.replicas is 0'],
      todo: `\`${kubectl} --namespace ${systemNamespace} scale deployment ${agentName} --replicas=1\``,
    },
  ];
};

const roleOf = (pod: Pod): string =>
  pod.metadata.labels?.[networkLabel.component] === 'gateway'
    ? 'gateway'
    : pod.metadata.name.startsWith(fabricName)
      ? 'node process'
      : 'agent';

const current = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && status?.phase !== 'Succeeded' && status?.phase !== 'Failed';

/** A pod that is not well, by the first reason that its status gives. */
export const ownPods: Rule = (view) => {
  const { cluster, facts, kubectl } = view;
  const bad = facts.ownPods.filter((pod) => current(pod) && !isReady(pod));
  const images = bad.flatMap((pod) => {
    const trouble = pullTroubleOf(pod);
    return trouble === undefined ? [] : [{ pod, trouble }];
  });
  const findings: Finding[] = [];
  const [image] = images;
  if (image !== undefined) {
    findings.push({
      code: 'agent_image',
      at: cluster,
      text: `node ${image.trouble.node} of ${cluster} cannot get the image ${image.trouble.image} of the ${roleOf(image.pod)}`,
      evidence: images.slice(0, 3).map(({ pod, trouble }) => `pod ${nameOf(pod)}: ${trouble.said}`),
      todo: pullRemedy(image.trouble),
    });
  }
  const homeless = bad.filter(
    (pod) => pod.spec?.nodeName === undefined && conditionOf(pod, 'PodScheduled')?.status === 'False',
  );
  const [lost] = homeless;
  if (lost !== undefined) {
    findings.push({
      code: 'agent_unscheduled',
      at: cluster,
      text: `no node of ${cluster} takes the ${roleOf(lost)} pod ${nameOf(lost)}`,
      evidence: homeless
        .slice(0, 3)
        .map((pod) => `pod ${nameOf(pod)}: ${conditionOf(pod, 'PodScheduled')?.message ?? ''}`),
      todo: `make room, or take the taint off that the message names; \`${kubectl} --namespace ${lost.metadata.namespace} describe pod ${lost.metadata.name}\``,
    });
  }
  const crashing = bad.flatMap((pod) => crashOf(pod, view.all.now));
  const [crash] = crashing;
  if (crash !== undefined) {
    findings.push({
      code: 'agent_crashes',
      at: cluster,
      text: `the ${roleOf(crash.pod)} pod ${nameOf(crash.pod)} of ${cluster} ${crash.what}`,
      evidence: crashing.slice(0, 3).map(({ pod, said }) => `pod ${nameOf(pod)}: ${said}`),
      todo: `\`${kubectl} --namespace ${crash.pod.metadata.namespace} logs ${crash.pod.metadata.name} --previous\` says why, without --previous what it does now`,
    });
  }
  return findings;
};

/** A pod has this long to become ready before that is worth a word. */
const startMs = 60_000;
const starting: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

/**
 * Pods of ours that have just been made, or are about to be, so that why they do not run is not known yet: their absence brings much about, and
 * its cause shows within seconds. Empty when there is nothing to wait for.
 */
export function unsettled({ facts, all }: View): readonly string[] {
  const young = facts.ownPods.filter(
    (pod) =>
      current(pod) &&
      !isReady(pod) &&
      all.now - Date.parse(pod.metadata.creationTimestamp ?? '') < startMs &&
      pullTroubleOf(pod) === undefined &&
      crashOf(pod, all.now).length === 0 &&
      conditionOf(pod, 'PodScheduled')?.status !== 'False',
  );
  const { agent } = facts.status;
  const wanted = agent?.spec?.replicas ?? 0;
  const isRefused = conditionOf(agent, 'ReplicaFailure')?.status === 'True';
  const isAway =
    wanted > (agent?.status?.readyReplicas ?? 0) &&
    !isRefused &&
    !facts.ownPods.some((pod) => current(pod) && roleOf(pod) === 'agent' && pod.metadata.namespace === systemNamespace);
  return [...young.map((pod) => `pod ${nameOf(pod)}`), ...(isAway ? [`a pod of Deployment ${agentName}`] : [])];
}

function crashOf(pod: Pod, now: number): { readonly pod: Pod; readonly what: string; readonly said: string }[] {
  for (const { name, state, restartCount, lastState } of pod.status?.containerStatuses ?? []) {
    const { reason = '', message = '' } = state?.waiting ?? {};
    if (pullTroubleOf(pod) !== undefined) return [];
    if (reason === 'CrashLoopBackOff' || (restartCount > 0 && lastState?.terminated !== undefined)) {
      const last = lastState?.terminated;
      const end =
        last === undefined ? '' : `, last with exit code ${last.exitCode}${last.message ? `: ${last.message}` : ''}`;
      return [
        { pod, what: `ends again and again (${restartCount} times)`, said: `container ${name} ${reason}${end}`.trim() },
      ];
    }
    // Between the end of a container and its restart.
    const ended = state?.terminated;
    if (ended !== undefined && ended.exitCode !== 0)
      return [
        {
          pod,
          what: 'has ended',
          said: `container ${name}: exit code ${ended.exitCode}${ended.message ? `: ${ended.message}` : ''}`,
        },
      ];
    if (reason !== '' && !starting.has(reason))
      return [{ pod, what: 'does not start', said: `container ${name}: ${reason}${message ? `: ${message}` : ''}` }];
  }
  const age = now - Date.parse(pod.metadata.creationTimestamp ?? '');
  const ready = conditionOf(pod, 'Ready');
  if (!(age > startMs) || pod.spec?.nodeName === undefined || ready?.status !== 'False') return [];
  return [{ pod, what: 'does not become ready', said: ready.message ?? ready.reason ?? 'no reason is given' }];
}

const recentMs = 10 * 60_000;
const timeOf = ({ lastTimestamp, eventTime, metadata }: CoreEvent): number =>
  Date.parse(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? '');

/** Pods that were never made: a Deployment or DaemonSet of ours lacks pods, and events say that creating them is refused. */
export const refusedPods: Rule = (view) => {
  const { cluster, facts, kubectl, all } = view;
  const { agent } = facts.status;
  const short: { readonly name: string; readonly namespace: string }[] = [];
  // Events outlive what they tell of: the Deployment itself says whether its pods are refused now.
  const refusedNow =
    conditionOf(agent, 'Available') === undefined || conditionOf(agent, 'ReplicaFailure')?.status === 'True';
  if (agent !== undefined && refusedNow && (agent.status?.readyReplicas ?? 0) < (agent.spec?.replicas ?? 1))
    short.push({ name: agentName, namespace: systemNamespace });
  const { nodeProcess } = facts;
  if (
    nodeProcess !== undefined &&
    (nodeProcess.status?.numberReady ?? 0) < (nodeProcess.status?.desiredNumberScheduled ?? 0)
  )
    short.push({ name: fabricName, namespace: systemNamespace });
  const tenants = facts.namespaces.filter(({ metadata }) => metadata.labels?.[label.tenantNamespace] !== undefined);
  for (const { metadata } of tenants) {
    const gateways = facts.ownPods.filter((pod) => pod.metadata.namespace === metadata.name);
    if (!gateways.some(isReady)) short.push({ name: 'gw-', namespace: metadata.name });
  }
  const refusals = facts.events.filter(
    (event) =>
      event.reason === 'FailedCreate' &&
      all.now - timeOf(event) < recentMs &&
      short.some(
        ({ name, namespace }) =>
          event.metadata.namespace === namespace &&
          (event.involvedObject.name ?? '').startsWith(name) &&
          // Where there is a pod, an older refusal is over, and the pod itself says what is wrong.
          !facts.ownPods.some(
            (pod) => current(pod) && pod.metadata.namespace === namespace && pod.metadata.name.startsWith(name),
          ),
      ),
  );
  const [first] = refusals;
  if (first === undefined) return [];
  const { kind, name, namespace } = first.involvedObject;
  return [
    {
      code: 'agent_refused',
      at: cluster,
      text: `the API server of ${cluster} refuses pods of ${kind} ${namespace}/${name}`,
      evidence: [first.message ?? ''],
      todo: todoOfRefusal(first.message ?? '', namespace ?? systemNamespace, kubectl),
    },
  ];
};

function todoOfRefusal(message: string, namespace: string, kubectl: string): string {
  if (/exceeded quota/.test(message))
    return `raise or delete the quota: \`${kubectl} --namespace ${namespace} get resourcequota\``;
  if (/violates PodSecurity/.test(message))
    return `\`${kubectl} label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged --overwrite\``;
  return `mend what the message names; \`${kubectl} --namespace ${namespace} get events --field-selector reason=FailedCreate\``;
}

export const webhooks: Rule = (view) => {
  const { cluster, facts, kubectl } = view;
  const { registered, failure, service } = facts.webhooks;
  const restart = `\`${kubectl} --namespace ${systemNamespace} rollout restart deployment ${agentName}\``;
  if (!registered) {
    return [
      {
        code: 'webhook_gone',
        at: cluster,
        text: `the webhooks of the agent of ${cluster} are not registered: pods of offloaded namespaces are not prepared, wrong objects not refused`,
        evidence: ['no webhook configuration calls Service isthmus-webhook'],
        todo: `${restart} registers them again; its log says what keeps it from that`,
      },
    ];
  }
  // Without a pod that is ready nothing answers: why there is none is told by its own causes.
  if ((facts.status.agent?.status?.readyReplicas ?? 0) === 0) return [];
  // Before what the API server says: over a connection that is open already it calls on, until that ends.
  if (service !== undefined && service.endpoints === 0) {
    const name = `Service ${systemNamespace}/${admission.service}`;
    return [
      {
        code: 'webhook_unreachable',
        at: cluster,
        text: `${name} of ${cluster} leads nowhere: the API server does not reach the webhooks of the agent`,
        evidence: [
          service.selector === undefined
            ? `${name} is not there`
            : `${name} has no ready endpoint; its selector is ${service.selector || 'empty'}`,
          ...(failure === undefined
            ? ['the API server still calls over a connection that was open before']
            : [failure]),
        ],
        todo: `${reinstall(view)}; \`${kubectl} --namespace ${systemNamespace} get service,endpointslices,pods --show-labels\` shows what the selector should match`,
      },
    ];
  }
  if (failure === undefined) return [];
  if (/x509|certificate|tls:/.test(failure)) {
    return [
      {
        code: 'webhook_untrusted',
        at: cluster,
        text: `the API server of ${cluster} does not believe the certificate of the agent's webhooks`,
        evidence: [failure],
        todo: `${restart}: it makes the certificate and writes its CA into the registration`,
      },
    ];
  }
  return [
    {
      code: 'webhook_unreachable',
      at: cluster,
      text: `the API server of ${cluster} does not reach the webhooks of the agent`,
      evidence: [failure],
      todo: `let the API server reach TCP 9443 of pods isthmus-agent in namespace ${systemNamespace} (NetworkPolicies, firewalls of nodes); \`${kubectl} --namespace ${systemNamespace} get endpointslices -l kubernetes.io/service-name=isthmus-webhook\` says whether there is a pod`,
    },
  ];
};

/** Those of an installation, by `--webhook-callers`, let pass what is needed. */
export const policies: Rule = ({ cluster, facts, kubectl }) => {
  const hit = facts.policies.flatMap((policy) => {
    if (policy.metadata.labels?.[callersLabel] !== undefined) return [];
    const wanted = Object.entries(policy.spec?.podSelector?.matchLabels ?? {});
    const pods = facts.ownPods.filter(
      (pod) =>
        pod.metadata.namespace === policy.metadata.namespace &&
        pod.spec?.hostNetwork !== true &&
        wanted.every(([key, value]) => pod.metadata.labels?.[key] === value),
    );
    return pods.length === 0 ? [] : [{ policy, pods }];
  });
  const [first] = hit;
  if (first === undefined) return [];
  return [
    {
      code: 'traffic_policy',
      at: cluster,
      text: `NetworkPolicy ${nameOf(first.policy)} of ${cluster} selects pods of ours: ${some(first.pods.map(nameOf))}`,
      evidence: hit.map(({ policy, pods }) => `${nameOf(policy)} selects ${pods.length} of our pods`),
      todo: `\`${kubectl} --namespace ${first.policy.metadata.namespace} delete networkpolicy ${first.policy.metadata.name}\`, or let it pass what docs/network.md lists`,
    },
  ];
};
