/** Why an agent does not become ready: its image, its end, or what keeps its pods from being made. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { type Deployment, deployments, pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { pullRemedy, pullTroubleOf } from './image-pull.ts';
import { agentName, controllerSelector } from './manifests.ts';

export interface AgentFailure {
  readonly text: string;
  readonly remedy: string;
}

const describe = `kubectl -n ${systemNamespace} describe pods -l ${controllerSelector}`;
const logLines = 5;
const longestLog = 800;

/** Newest first: pods of the version before may still run. */
const newestFirst = (one: Pod, other: Pod): number =>
  Date.parse(String(other.metadata.creationTimestamp ?? 0)) - Date.parse(String(one.metadata.creationTimestamp ?? 0));

/** The end of a container that ended, now or before it was started again. */
function endOf({ status }: Pod) {
  for (const { name, state, lastState, restartCount = 0 } of status?.containerStatuses ?? []) {
    const ended = state?.terminated ?? lastState?.terminated;
    if (ended !== undefined)
      return {
        container: name,
        code: ended.exitCode,
        reason: ended.reason,
        isPast: state?.terminated === undefined,
        restartCount,
      };
  }
  return undefined;
}

const isReady = ({ status }: Pod): boolean =>
  (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True');

/** Undefined: the kubelet gives no log. */
async function logOf(kube: KubeClient, { metadata }: Pod, isPast: boolean): Promise<string | undefined> {
  const query = `tailLines=${logLines}${isPast ? '&previous=true' : ''}`;
  try {
    const text = await kube.path(`/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/log?${query}`);
    const said = text.trim().slice(-longestLog);
    return said === '' ? undefined : said;
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

const withLog = (log: string | undefined): string => (log === undefined ? '' : `; its log ends with:\n${log}\n`);

function refusalOf(agent: Deployment | undefined): string | undefined {
  const failed = agent?.status?.conditions?.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True');
  return failed && (failed.message ?? failed.reason ?? 'no reason given');
}

/** Of the deployment as it is now. */
export async function agentFailure(kube: KubeClient): Promise<AgentFailure> {
  const agent = await kube.get(deployments, { namespace: systemNamespace, name: agentName });
  const running = (await kube.list(pods, controllerSelector, systemNamespace)).sort(newestFirst);
  const pulled = running.map(pullTroubleOf).find((one) => one !== undefined);
  if (pulled !== undefined)
    return {
      text: `node ${pulled.node} cannot get the image ${pulled.image}: ${pulled.said}`,
      remedy: pullRemedy(pulled),
    };
  const refused = refusalOf(agent);
  if (refused !== undefined)
    return {
      text: `the cluster refuses to make its pod: ${refused}`,
      remedy: 'give what the message names; `isthmus check` looks at pod security and rights',
    };
  for (const pod of running) {
    const end = endOf(pod);
    if (end === undefined || isReady(pod)) continue;
    const log = await logOf(kube, pod, end.isPast);
    const times = end.restartCount > 0 ? `, and was started again ${end.restartCount} times` : '';
    return {
      text: `it ended with code ${end.code}${end.reason ? ` (${end.reason})` : ''}${times}${withLog(log)}`,
      remedy: `mend what its log names: kubectl -n ${systemNamespace} logs ${pod.metadata.name}${end.isPast ? ' --previous' : ''}`,
    };
  }
  const unready = running.find((pod) => !isReady(pod));
  const unscheduled = unready?.status?.conditions?.find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  );
  if (unscheduled !== undefined)
    return {
      text: `no node takes its pod: ${unscheduled.message ?? unscheduled.reason ?? 'no reason given'}`,
      remedy: `make room on a Linux node; \`${describe}\` says what each lacks`,
    };
  if (unready !== undefined)
    return {
      text: `it runs and does not say that it is ready${withLog(await logOf(kube, unready, false))}`,
      remedy: `look at it with \`${describe}\`, or wait longer with --timeout`,
    };
  return {
    text: running.length === 0 ? 'it has no pod yet' : 'its pods are not all of the new version yet',
    remedy: `look at it with \`kubectl -n ${systemNamespace} describe deployment ${agentName}\`, or wait longer with --timeout`,
  };
}
