/** FirewallConfigurations and RouteConfigurations that people wrote, as far as one namespace is their target (reference 1.8, 1.9, 2.3). */
import type { FirewallTable } from '#shared/schema/liqo/firewall-configuration.ts';
import type { RouteTable } from '#shared/schema/liqo/route-configuration.ts';

export interface UserFirewall {
  /** namespace/name. */
  readonly name: string;
  readonly table: FirewallTable;
}

export interface UserRoutes {
  /** namespace/name. */
  readonly name: string;
  readonly table: RouteTable;
}
