/** Which of the ways in docs/ownership.md the peerings with one peer were made. Pure. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { isthmusLabel } from '#shared/domain/liqo-keys.ts';
import type { Peering } from '#shared/schema/isthmus/peering.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

export interface MadeOf {
  readonly peer: string;
  readonly tenant: Tenant | undefined;
  /** Of type ControlPlane. */
  readonly identity: Identity | undefined;
  /** Credentials for this peer lie here that no Identity made. */
  readonly isDeclared: boolean;
  /** All other objects made for the peering: network and slices. */
  readonly others: readonly KubeObject[];
  /** All of the cluster. */
  readonly asks: readonly Peering[];
}

const isBrokers = ({ metadata }: KubeObject): boolean => metadata.labels?.[isthmusLabel.peering] !== undefined;

/** Of one peering: `broker`, `Peering NAME`, `manifests` or `liqoctl`; of two directions made in two ways, both. Empty: unknown. */
export function ownerText({ peer, tenant, identity, isDeclared, others, asks }: MadeOf): string {
  const ask = asks.find(({ spec, status }) => spec.provider === peer && status?.owner === 'Object');
  const broker = ask === undefined ? 'broker' : `Peering ${ask.metadata.name}`;
  const asked = [identity, ...others].some((object) => object !== undefined && isBrokers(object));
  const isManual = (object: KubeObject | undefined): boolean => object !== undefined && !isBrokers(object);
  const isTolerated = tenant?.spec.authzPolicy === 'TolerateNoHandshake';
  const ways = [
    ...(asked ? [broker] : []),
    ...(!asked && tenant !== undefined && isBrokers(tenant) ? ['broker'] : []),
    ...(isDeclared || (isManual(tenant) && isTolerated) ? ['manifests'] : []),
    ...(isManual(identity) || (isManual(tenant) && !isTolerated) ? ['liqoctl'] : []),
  ];
  return [...new Set(ways)].join(', ');
}
