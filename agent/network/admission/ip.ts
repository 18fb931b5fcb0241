/**
 * Which addresses a user may give to peers by an IP object. Peers that reach an address arrive there from inside of this cluster: hosts of the cluster itself
 * are for its administrators to give out. Pure.
 */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { contains } from '#shared/domain/cidr.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';

/** A range that only administrators may give out, and what it is, for people. */
export interface Guarded {
  readonly range: string;
  readonly what: string;
}

/** The same in every cluster. */
const always: readonly Guarded[] = [
  { range: '0.0.0.0/8', what: 'this host' },
  { range: '127.0.0.0/8', what: 'loopback' },
  { range: '169.254.0.0/16', what: 'link-local, where clouds have their metadata service' },
  { range: '224.0.0.0/3', what: 'multicast or reserved' },
];

/**
 * `guarded`: those of this cluster. Administrators are the users that may make IPs in the system namespace. What was accepted stays: `spec.ip` cannot be
 * changed.
 */
export function validateIp(ip: Ip, guarded: readonly Guarded[]): Verdict {
  const who = 'a user that may create IPs in the system namespace';
  const hit = [...always, ...guarded].find(({ range }) => contains(range, ip.spec.ip));
  if (hit !== undefined)
    return deny(
      'forbidden',
      `spec.ip is ${ip.spec.ip}, in ${hit.range} (${hit.what}): peers would reach it; accepted from ${who}, and from others an address of a host that is not of this cluster`,
    );
  if (ip.spec.networkRef?.name)
    return deny(
      'forbidden',
      `spec.networkRef is ${ip.spec.networkRef.name}: accepted from ${who}; leave it out, and the address is of the external range`,
    );
  const order = Object.keys(ip.spec.serviceTemplate?.metadata?.annotations ?? {}).find((key) => key.includes('/'));
  if (order !== undefined)
    return deny(
      'forbidden',
      `spec.serviceTemplate.metadata.annotations has ${order}, which controllers of this cluster may obey: accepted from ${who}, and from others keys without a domain`,
    );
  const service = ip.spec.serviceTemplate?.spec as ServiceFields | undefined;
  if (service?.externalIPs?.length || (service?.type !== undefined && service.type !== 'ClusterIP'))
    return deny(
      'forbidden',
      `spec.serviceTemplate.spec has ${service.externalIPs?.length ? 'externalIPs' : `type ${service.type}`}: accepted from ${who}, and from others type ClusterIP without externalIPs`,
    );
  return allow;
}

interface ServiceFields {
  readonly type?: string;
  readonly externalIPs?: readonly string[];
}
