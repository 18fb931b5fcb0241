/** What guests' Services, Ingresses and Secrets may not ask for on this provider: addresses, names, tokens and orders to its controllers. Pure. */
import * as z from 'zod';
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { matchesAny } from '#shared/domain/key-patterns.ts';
import type { GuestRules } from '../guests/decide.ts';
import { malformed, settingText } from '../guests/refusal-text.ts';
import { validateAnnotations } from './guest-annotations.ts';

const text = z.string().nullish();
const Metadata = z.looseObject({ annotations: z.record(z.string(), z.string()).nullish() });
const GuestService = z.looseObject({
  metadata: Metadata.nullish(),
  spec: z
    .looseObject({
      type: text,
      externalIPs: z.array(z.string()).nullish(),
      externalName: text,
      loadBalancerIP: text,
      loadBalancerClass: text,
    })
    .nullish(),
});
const GuestIngress = z.looseObject({
  metadata: Metadata.nullish(),
  spec: z
    .looseObject({
      defaultBackend: z.unknown().optional(),
      rules: z.array(z.looseObject({ host: text })).nullish(),
      tls: z.array(z.looseObject({ hosts: z.array(z.string()).nullish() })).nullish(),
    })
    .nullish(),
});

/** Of Kubernetes: the controller for tokens fills Secrets of it. */
const accountToken = 'kubernetes.io/service-account-token';

const refuse = (message: string): Verdict => deny('sandbox_refused', message);

/** External IPs: every node would send traffic for these addresses to the guest's pods, and take it from its real destination. */
function externalAddresses(addresses: readonly string[]): Verdict {
  if (addresses.length === 0) return allow;
  return refuse(
    `spec.externalIPs is ${addresses.join(', ')}: in a namespace of a consumer it would take traffic of others; leave it out and use type LoadBalancer or NodePort`,
  );
}

/** `rules`: those for the guest that asks; undefined for the provider's own users and controllers. */
export function validateGuestService(service: unknown, before?: unknown, rules?: GuestRules): Verdict {
  const parsed = GuestService.safeParse(service);
  if (!parsed.success) return malformed(parsed.error);
  const { metadata, spec } = parsed.data;
  const taken = externalAddresses(spec?.externalIPs ?? []);
  if (!taken.allowed || rules === undefined) return taken;
  const was = GuestService.safeParse(before).data;
  const address = spec?.loadBalancerIP;
  if (address && address !== was?.spec?.loadBalancerIP && !rules.loadBalancerAddresses)
    return refuse(
      `spec.loadBalancerIP is ${address}: the provider chooses the address; leave it out, accepted is none ${settingText('loadBalancerAddresses')}`,
    );
  const balancer = spec?.loadBalancerClass;
  if (balancer && balancer !== was?.spec?.loadBalancerClass && !matchesAny(rules.loadBalancerClasses, balancer))
    return refuse(
      `spec.loadBalancerClass is ${balancer}: accepted are ${listed(rules.loadBalancerClasses)} ${settingText('loadBalancerClasses')}`,
    );
  const name = spec?.type === 'ExternalName' ? namedBy(spec) : undefined;
  const isKnown = was?.spec?.type === 'ExternalName' && namedBy(was.spec) === name;
  if (name !== undefined && !isKnown && !isAcceptedHost(rules.externalNames, name))
    return refuse(
      `spec.externalName is ${name}: proxies of the provider would follow it to where guests do not reach; accepted are ${listed(rules.externalNames)} ${settingText('externalNames')}`,
    );
  return validateAnnotations(metadata, was?.metadata, rules.annotations);
}

const listed = (accepted: readonly string[]): string => accepted.join(', ') || 'none';

/** As resolvers compare names. */
const namedBy = ({ externalName }: { readonly externalName?: string | null | undefined }): string =>
  (externalName ?? '').toLowerCase().replace(/\.$/, '');

/** `*.` stands for any name in the domain, also a wildcard. */
const isAcceptedHost = (accepted: readonly string[], host: string): boolean =>
  accepted.some((one) => one === '*' || one === host || (one.startsWith('*.') && host.endsWith(one.slice(1))));

export function validateGuestIngress(ingress: unknown, before?: unknown, rules?: GuestRules): Verdict {
  if (rules === undefined) return allow;
  const parsed = GuestIngress.safeParse(ingress);
  if (!parsed.success) return malformed(parsed.error);
  const { metadata, spec } = parsed.data;
  const was = GuestIngress.safeParse(before).data;
  const known = new Set(hostsOf(was?.spec));
  const unfit = hostsOf(spec).find((host) => !known.has(host) && !isAcceptedHost(rules.ingressHosts, host));
  if (unfit !== undefined) {
    const what = unfit === everyHost ? 'spec has a rule or backend for every host' : `spec has host ${unfit}`;
    return refuse(
      `${what}: it would take requests of others; accepted hosts are ${listed(rules.ingressHosts)} ${settingText('ingressHosts')}`,
    );
  }
  return validateAnnotations(metadata, was?.metadata, rules.annotations);
}

/** A token in it would have no end, and be the consumer's own and not one of its pods'. */
export function validateGuestSecret(secret: unknown, before?: unknown, rules?: GuestRules): Verdict {
  if (rules === undefined || before !== undefined) return allow;
  const parsed = z.looseObject({ type: text }).safeParse(secret);
  if (!parsed.success) return malformed(parsed.error);
  return parsed.data.type === accountToken
    ? refuse(`type is ${accountToken}: the provider would write a token of its account into it; leave the type out`)
    : allow;
}

const everyHost = '';

function hostsOf(spec: z.infer<typeof GuestIngress>['spec']): string[] {
  return [
    ...(spec?.defaultBackend == null ? [] : [everyHost]),
    ...(spec?.rules ?? []).map(({ host }) => host ?? everyHost),
    ...(spec?.tls ?? []).flatMap(({ hosts }) => hosts ?? []),
  ];
}
