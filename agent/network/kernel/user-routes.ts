/** RouteConfigurations that people wrote, as rules and routes in kernel tables of their own (reference 1.8). */
import { createHash } from 'node:crypto';
import { canonicalCidr } from '#shared/domain/cidr.ts';
import type { Route, Rule } from './kernel-state.ts';
import type { UserRoutes } from './user-configurations.ts';

/** As Liqo numbers it: the first four bytes of the SHA-256 of the name, little-endian, never negative, never one of the kernel's own 256. */
export function tableNumber(name: string): number {
  const digest = createHash('sha256').update(name).digest();
  const at = (index: number): number => digest[index] ?? 0;
  return at(0) + (at(1) | 1) * 2 ** 8 + at(2) * 2 ** 16 + (at(3) >> 1) * 2 ** 24;
}

export function userRouting(configurations: readonly UserRoutes[]): { routes: Route[]; rules: Rule[] } {
  const routes = new Map<string, Route>();
  const rules = new Map<string, Rule>();
  for (const { name, table } of [...configurations].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const number = tableNumber(table.name);
    for (const { dst, src, iif, oif, fwmark, priority, routes: entries } of table.rules) {
      const rule: Rule = {
        table: number,
        ...(priority === undefined || priority === 0 ? {} : { priority }),
        ...(dst === undefined ? {} : { to: canonicalCidr(dst) }),
        ...(src === undefined ? {} : { from: canonicalCidr(src) }),
        ...(iif === undefined || iif === '' ? {} : { iif }),
        ...(oif === undefined || oif === '' ? {} : { oif }),
        ...(fwmark === undefined || fwmark === 0 ? {} : { fwmark }),
        configuration: name,
      };
      rules.set(JSON.stringify({ ...rule, configuration: '' }), rule);
      for (const { dst: destination, src: source, gw, dev, onlink, scope } of entries) {
        const to = canonicalCidr(destination);
        routes.set(`${number} ${to}`, {
          table: number,
          destination: to === '0.0.0.0/0' ? 'default' : to,
          ...(source === undefined ? {} : { source }),
          ...(gw === undefined ? {} : { via: gw }),
          ...(dev === undefined || dev === '' ? {} : { device: dev }),
          ...(onlink ? { onlink } : {}),
          ...(scope === undefined ? {} : { scope }),
          configuration: name,
        });
      }
    }
  }
  return { routes: [...routes.values()], rules: [...rules.values()] };
}
