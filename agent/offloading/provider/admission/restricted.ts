/** What the restricted level of the Pod Security Standards asks for beyond baseline. Pure. */
import type { GuestContainer, GuestPod } from './guest-pod.ts';
import type { Refusal } from './pod-placement.ts';

const confined = ['RuntimeDefault', 'Localhost'];

export function* restrictedRefusals(pod: GuestPod): Generator<Refusal> {
  const whole = pod.securityContext ?? {};
  if (whole.runAsUser === 0) yield ['securityContext.runAsUser', 'is 0; accepted is any other user'];
  for (const list of ['containers', 'initContainers', 'ephemeralContainers'] as const) {
    for (const [i, container] of (pod[list] ?? []).entries()) yield* ofContainer(`${list}[${i}]`, container, whole);
  }
}

function* ofContainer(
  at: string,
  { name, securityContext: own }: GuestContainer,
  pod: NonNullable<GuestPod['securityContext']>,
): Generator<Refusal> {
  const field = (key: string): string => `${at}.securityContext.${key}`;
  if (own?.allowPrivilegeEscalation !== false)
    yield [field('allowPrivilegeEscalation'), `container ${name}: accepted is false`];
  if ((own?.runAsNonRoot ?? pod.runAsNonRoot) !== true)
    yield [field('runAsNonRoot'), `container ${name}: accepted is true, here or for the pod`];
  if (own?.runAsUser === 0) yield [field('runAsUser'), `container ${name}: is 0; accepted is any other user`];
  const profile = own?.seccompProfile?.type ?? pod.seccompProfile?.type ?? 'absent';
  if (!confined.includes(profile))
    yield [field('seccompProfile.type'), `container ${name}: is ${profile}; accepted: ${confined.join(', ')}`];
  if (!own?.capabilities?.drop?.includes('ALL'))
    yield [field('capabilities.drop'), `container ${name}: accepted is a list with ALL`];
  const added = own?.capabilities?.add?.find((capability) => capability !== 'NET_BIND_SERVICE');
  if (added !== undefined)
    yield [field('capabilities.add'), `container ${name}: ${added} is not accepted, only NET_BIND_SERVICE`];
}
