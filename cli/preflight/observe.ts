/** Looks at a cluster for the checks before an installation. Reads, asks for reviews and tries without storing: nothing is changed. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { installedKinds, ourWebhook } from '#cli/install/apply.ts';
import type { ClusterState } from '#cli/install/cluster-state.ts';
import { peerUrl, stateOf } from '#cli/install/install-agent.ts';
import type { InstallFlags } from '#cli/install/install-flags.ts';
import { type Settled, settleNetwork } from '#cli/install/read-ranges.ts';
import type { CliIo } from '#cli/output/io.ts';
import { readClusterFacts } from '#cli/platform/facts.ts';
import { findProfile, type ProfileName, profileNames } from '#cli/platform/profiles.ts';
import { clusterRoles, namespaces, nodes, pods, roles } from '#shared/domain/core-kinds.ts';
import { defaultCredentials } from '#shared/domain/credential-setting.ts';
import type { KubeObject, Namespace, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { CheckFacts, Right } from './facts.ts';
import { readSigner } from './read-signer.ts';

export type CheckFlags = Pick<
  InstallFlags,
  | 'kubeconfig'
  | 'context'
  | 'apiServerUrl'
  | 'network'
  | 'podCidr'
  | 'serviceCidr'
  | 'externalCidr'
  | 'internalCidr'
  | 'reservedSubnet'
  | 'credentials'
  | 'profile'
  | 'ignoreCheck'
>;

export interface Wanted {
  /** Undefined: any name. */
  readonly clusterId: string | undefined;
  /** The command that updates a cluster of another name. */
  readonly remedy: (known: string) => string;
}

/** Each is a refusal where a check stops. */
export interface Observed {
  readonly facts: CheckFacts;
  readonly state: ClusterState | AppError;
  readonly network: Settled | AppError | undefined;
  readonly apiServerUrl: string | AppError;
  /** By `--profile`, now or at an earlier installation. */
  readonly namedProfile: ProfileName | undefined;
}

/** A refusal becomes a value, so that one check does not hide the others. A server that does not answer still fails. */
async function refusalOr<T>(work: () => T | Promise<T>): Promise<T | AppError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AppError && !error.facts.retry) return error;
    throw error;
  }
}

/** Fails with `kube_forbidden`, in the words of the rights that are missing, when even looking is refused. */
export async function observe(
  io: Pick<CliIo, 'clock'>,
  kube: KubeClient,
  flags: CheckFlags,
  { clusterId, remedy }: Wanted,
): Promise<Observed> {
  const clockAheadMs = await clockDifference(io, kube);
  const [user, missingRights] = await Promise.all([userOf(kube), rightsMissing(kube)]);
  const cluster = await readClusterFacts(kube).catch((error: unknown) => {
    if (codeOf(error) !== 'kube_forbidden') throw error;
    const first = missingRights[0];
    throw new AppError(
      'kube_forbidden',
      `${user || 'the user of the kubeconfig'} may not look at this cluster: ${(error as Error).message}`,
      {
        cause: error,
        detail: {
          remedy: `use the kubeconfig of an administrator${first ? `: missing is also ${first.verb} ${first.resource}` : ''}`,
        },
      },
    );
  });
  const [state, network, apiServerUrl, trials] = await Promise.all([
    refusalOr(() => stateOf(kube, clusterId, remedy)),
    flags.network ? refusalOr(() => settleNetwork(kube, clusterId ?? 'check', flags)) : undefined,
    refusalOr(() => peerUrl(flags.apiServerUrl, kube.server)),
    missingRights.length === 0 ? tryPods(kube) : undefined,
  ]);
  const before = state instanceof AppError ? undefined : state;
  const namedProfile = flags.profile ?? profileNames.find((name) => name === before?.profile);
  const signer = await readSigner(kube, flags.credentials ?? before?.credentials ?? defaultCredentials);
  const facts: CheckFacts = {
    cluster,
    found: findProfile(cluster, namedProfile),
    user,
    missingRights,
    agent: state instanceof AppError ? { refusal: state } : state,
    signer,
    ...(trials !== undefined && { trials }),
    clockAheadMs,
    ...(network !== undefined && { ranges: network instanceof AppError ? { refusal: network } : network }),
    apiUrl: apiServerUrl instanceof AppError ? { refusal: apiServerUrl } : { url: apiServerUrl },
    kubectl: `kubectl --kubeconfig ${flags.kubeconfig}${flags.context === undefined ? '' : ` --context ${flags.context}`}`,
  };
  return { facts, state, network, apiServerUrl, namedProfile };
}

/** Taken in the middle between asking and the answer, and of the second that the server names. */
export async function clockDifference({ clock }: Pick<CliIo, 'clock'>, kube: KubeClient): Promise<number | undefined> {
  const askedAt = clock.now();
  const server = await kube.serverTime();
  return server === undefined ? undefined : (askedAt + clock.now()) / 2 - (server + 500);
}

/** Empty before Kubernetes 1.28. */
async function userOf(kube: KubeClient): Promise<string> {
  try {
    type Status = { readonly userInfo?: { readonly username?: string } };
    const { userInfo } = await kube.review<Status>('authentication.k8s.io', 'SelfSubjectReview', {});
    return userInfo?.username ?? '';
  } catch (error) {
    if (codeOf(error) === 'kube_not_found' || codeOf(error) === 'kube_forbidden') return '';
    throw error;
  }
}

const resourceOf = ({ group, plural }: ResourceType): string => (group === '' ? plural : `${plural}.${group}`);

async function isAllowed(kube: KubeClient, group: string, resource: string, verb: string): Promise<boolean> {
  const spec = { resourceAttributes: { group, resource, verb } };
  const { allowed } = await kube.review<{ readonly allowed?: boolean }>(
    'authorization.k8s.io',
    'SelfSubjectAccessReview',
    spec,
  );
  return allowed === true;
}

/** An installer writes everything that is applied, and gives the agent rights that it need not have itself. */
async function rightsMissing(kube: KubeClient): Promise<Right[]> {
  if (await isAllowed(kube, '*', '*', '*')) return [];
  const needed = [
    ...installedKinds.flatMap((type) => ['get', 'create', 'patch'].map((verb) => ({ type, verb }))),
    ...[nodes, pods].map((type) => ({ type, verb: 'list' })),
    ...[clusterRoles, roles].flatMap((type) => ['bind', 'escalate'].map((verb) => ({ type, verb }))),
  ];
  const answers = await Promise.all(needed.map(({ type, verb }) => isAllowed(kube, type.group, type.plural, verb)));
  return needed.filter((_, i) => !answers[i]).map(({ type, verb }) => ({ verb, resource: resourceOf(type) }));
}

const podSecurity = 'pod-security.kubernetes.io/enforce';

/** As the node process is: what policies of a cluster refuse. */
const privilegedPod = (namespace: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'isthmus-check', namespace },
  spec: {
    hostNetwork: true,
    hostPID: true,
    automountServiceAccountToken: false,
    containers: [
      {
        name: 'check',
        image: 'isthmus.dev/check:none',
        resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { memory: '64Mi' } },
        securityContext: { privileged: true, runAsUser: 0 },
      },
    ],
  },
});

async function tryPods(kube: KubeClient): Promise<NonNullable<CheckFacts['trials']>> {
  const installed = (await kube.get<Namespace>(namespaces, { name: systemNamespace })) !== undefined;
  const labelled: Namespace = {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: systemNamespace, labels: { [podSecurity]: 'privileged' } },
  };
  const refusal = async (type: ResourceType, object: KubeObject): Promise<string | undefined> => {
    const text = await kube.refusalOf(type, object);
    return text !== undefined && ourWebhook.test(text) ? undefined : text;
  };
  return {
    namespace: await refusal(namespaces, labelled),
    pod: await refusal(pods, privilegedPod(installed ? systemNamespace : 'default')),
  };
}
