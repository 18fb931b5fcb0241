/**
 * What a guest's pod may not ask for on this provider: a level of the Pod Security Standards, plus what would let it choose its node or push
 * aside others (pod-placement.ts), and be more than a guest (pod-identity.ts). Pure. Unknown fields pass here; the API server judges them when the Pod is made.
 */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { quantityProblem } from '#shared/domain/pod-resources.ts';
import { type GuestRules, safeRules } from '../guests/decide.ts';
import { malformed } from '../guests/refusal-text.ts';
import { type GuestContainer, GuestPod } from './guest-pod.ts';
import { identityRefusals } from './pod-identity.ts';
import { placementRefusals, type Refusal } from './pod-placement.ts';
import { restrictedRefusals } from './restricted.ts';

const capabilities = new Set([
  ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE'],
  ...['SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
]);
const sysctls = new Set([
  ...['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.ip_unprivileged_port_start'],
  ...['net.ipv4.tcp_syncookies', 'net.ipv4.ping_group_range', 'net.ipv4.ip_local_reserved_ports'],
  ...[
    'net.ipv4.tcp_keepalive_time',
    'net.ipv4.tcp_fin_timeout',
    'net.ipv4.tcp_keepalive_intvl',
    'net.ipv4.tcp_keepalive_probes',
  ],
]);
const seLinuxTypes = new Set(['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']);
const appArmorAnnotation = 'container.apparmor.security.beta.kubernetes.io/';

export interface Sandbox {
  readonly rules: GuestRules;
  /** Of the consumer's slice: what the provider itself told its pods to select. */
  readonly nodeSelector?: Readonly<Record<string, string>>;
}

export function validateGuestPod(
  spec: unknown,
  annotations: Readonly<Record<string, string>> = {},
  sandbox: Sandbox = { rules: safeRules },
): Verdict {
  const parsed = GuestPod.safeParse(spec);
  if (!parsed.success) return malformed(parsed.error, 'spec.pod.');
  const bad = quantityProblem(spec as PodSpec);
  if (bad) {
    return deny(
      'invalid_input',
      `spec.pod.${bad.field} is ${JSON.stringify(bad.value)}: accepted is a quantity of at least 0, for example 500m or 1Gi`,
    );
  }
  const [refused] = refusals(parsed.data, annotations, sandbox);
  return refused ? deny('sandbox_refused', `spec.pod.${refused[0]}: ${refused[1]}`) : allow;
}

function* refusals(
  pod: GuestPod,
  annotations: Readonly<Record<string, string>>,
  { rules, nodeSelector = {} }: Sandbox,
): Generator<Refusal> {
  yield* placementRefusals(pod, rules, nodeSelector);
  yield* identityRefusals(pod, rules);
  if (rules.podSecurity !== 'privileged') yield* baselineRefusals(pod, annotations);
  if (rules.podSecurity === 'restricted') yield* restrictedRefusals(pod);
}

function* baselineRefusals(pod: GuestPod, annotations: Readonly<Record<string, string>>): Generator<Refusal> {
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC'] as const) {
    if (pod[field]) yield [field, 'guests do not share namespaces of the node; leave it out'];
  }
  for (const { name } of pod.securityContext?.sysctls ?? []) {
    if (!sysctls.has(name))
      yield ['securityContext.sysctls', `${name} is not one of the safe ones: ${[...sysctls].join(', ')}`];
  }
  yield* profileRefusals('securityContext', pod.securityContext);
  for (const list of ['containers', 'initContainers', 'ephemeralContainers'] as const) {
    for (const [i, container] of (pod[list] ?? []).entries()) yield* containerRefusals(`${list}[${i}]`, container);
  }
  for (const [key, value] of Object.entries(annotations)) {
    if (key.startsWith(appArmorAnnotation) && value !== 'runtime/default' && !value.startsWith('localhost/')) {
      yield [`metadata.annotations[${key}]`, `AppArmor profile ${value} switches confinement off; leave it out`];
    }
  }
}

function* containerRefusals(at: string, container: GuestContainer): Generator<Refusal> {
  const context = container.securityContext;
  if (context?.privileged)
    yield [`${at}.securityContext.privileged`, `container ${container.name}: guests do not run privileged`];
  if (context?.procMount && context.procMount !== 'Default') {
    yield [`${at}.securityContext.procMount`, `${context.procMount} shows the node; accepted is Default`];
  }
  for (const capability of context?.capabilities?.add ?? []) {
    if (!capabilities.has(capability)) {
      yield [
        `${at}.securityContext.capabilities.add`,
        `${capability} is not one of those that guests get: ${[...capabilities].join(', ')}`,
      ];
    }
  }
  for (const [p, { hostPort }] of (container.ports ?? []).entries()) {
    if (hostPort)
      yield [`${at}.ports[${p}].hostPort`, `guests do not open port ${hostPort} of the node; use a Service`];
  }
  const handlers = { ...probesOf(container) };
  for (const [path, handler] of Object.entries(handlers)) {
    const host = handler?.httpGet?.host || handler?.tcpSocket?.host;
    if (host) yield [`${at}.${path}.host`, `the kubelet of the provider would call ${host} for you; leave it out`];
  }
  yield* profileRefusals(`${at}.securityContext`, context);
}

const probesOf = ({ livenessProbe, readinessProbe, startupProbe, lifecycle }: GuestContainer) => ({
  livenessProbe,
  readinessProbe,
  startupProbe,
  'lifecycle.postStart': lifecycle?.postStart,
  'lifecycle.preStop': lifecycle?.preStop,
});

type Profiles = Pick<
  NonNullable<GuestPod['securityContext']>,
  'seccompProfile' | 'appArmorProfile' | 'seLinuxOptions' | 'windowsOptions'
>;

function* profileRefusals(at: string, context: Profiles | null | undefined): Generator<Refusal> {
  for (const field of ['seccompProfile', 'appArmorProfile'] as const) {
    if (context?.[field]?.type === 'Unconfined')
      yield [`${at}.${field}.type`, 'Unconfined switches confinement off; use RuntimeDefault'];
  }
  const selinux = context?.seLinuxOptions;
  if (selinux && (!seLinuxTypes.has(selinux.type ?? '') || selinux.user || selinux.role)) {
    yield [`${at}.seLinuxOptions`, 'guests keep the SELinux context of containers; leave it out'];
  }
  if (context?.windowsOptions?.hostProcess) yield [`${at}.windowsOptions.hostProcess`, 'guests do not run on the host'];
}
