/** Which FirewallConfigurations and RouteConfigurations a node or a gateway applies: by label sets alone (reference 2.3). */
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import { networkLabel as label, target } from '#shared/domain/network-keys.ts';
import type { FirewallConfiguration } from '#shared/schema/liqo/firewall-configuration.ts';
import type { RouteConfiguration } from '#shared/schema/liqo/route-configuration.ts';
import type { UserFirewall, UserRoutes } from '../kernel/user-configurations.ts';

type LabelSet = Readonly<Record<string, string>>;

export type Target =
  | { readonly is: 'node'; readonly node: string }
  | { readonly is: 'gateway'; readonly node: string; readonly remoteClusterId: string };

const firewallSets = (of: Target): readonly LabelSet[] => {
  const set = (category: string, subcategory?: string, unique?: string): LabelSet => ({
    [label.firewallCategory]: category,
    ...(subcategory === undefined ? {} : { [label.firewallSubcategory]: subcategory }),
    ...(unique === undefined ? {} : { [label.firewallUnique]: unique }),
  });
  return of.is === 'node'
    ? [
        set(target.fabric, target.allNodes),
        set(target.fabric, target.singleNode, of.node),
        set(target.fabric, target.ipMapping),
      ]
    : [
        set(target.gateway, target.allGateways),
        set(target.gateway, target.fabric),
        set(target.gateway, target.ipMapping),
        set(target.gateway, undefined, of.remoteClusterId),
      ];
};

const routeSets = (of: Target): readonly LabelSet[] => {
  const set = (category: string, subcategory?: string, unique?: string): LabelSet => ({
    [label.routeCategory]: category,
    ...(subcategory === undefined ? {} : { [label.routeSubcategory]: subcategory }),
    ...(unique === undefined ? {} : { [label.routeUnique]: unique }),
  });
  return of.is === 'node'
    ? [set(target.fabric)]
    : [
        set(target.gateway, target.fabric),
        set(target.gateway, target.fabricNode, of.node),
        set(target.gateway, undefined, of.remoteClusterId),
      ];
};

/** Sorted by name. Objects that are being deleted count no more. */
export const firewallsFor = (of: Target, all: readonly FirewallConfiguration[]): readonly UserFirewall[] =>
  aimedAt(firewallSets(of), all).map((object) => ({ name: keyOf(object), table: object.spec.table }));

/** Sorted by name. Objects that are being deleted count no more. */
export const routesFor = (of: Target, all: readonly RouteConfiguration[]): readonly UserRoutes[] =>
  aimedAt(routeSets(of), all).map((object) => ({ name: keyOf(object), table: object.spec.table }));

function aimedAt<T extends KubeObject>(sets: readonly LabelSet[], all: readonly T[]): T[] {
  const wears = ({ metadata }: T, set: LabelSet): boolean =>
    Object.entries(set).every(([key, value]) => metadata.labels?.[key] === value);
  return all
    .filter((object) => object.metadata.deletionTimestamp === undefined && sets.some((set) => wears(object, set)))
    .sort((a, b) => compareText(keyOf(a), keyOf(b)));
}

/** By code unit: the order is the same in every locale. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
