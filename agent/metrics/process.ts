/** What every process of the agent counts: itself, its requests and watches, and passes of controllers. */
import type { ClientMetrics, ControllerMetrics } from '#kube/model/metrics.ts';
import { controllerMetrics, processMetrics } from '#shared/metrics/definitions.ts';
import type { Registry } from '#shared/metrics/registry.ts';

export function countProcess(registry: Registry, about: { readonly version: string; readonly role: string }): void {
  const begun = (Date.now() - process.uptime() * 1_000) / 1_000;
  registry.set(processMetrics.build, { ...about, runtime: process.version }, 1);
  registry.set(processMetrics.start, {}, Math.round(begun * 1_000) / 1_000);
  registry.collect(processMetrics.memory, () => [[{}, process.memoryUsage.rss()]]);
  registry.collect(processMetrics.cpu, () => {
    const { user, system } = process.cpuUsage();
    return [[{}, (user + system) / 1e6]];
  });
}

/** `peer`: of the API servers of providers. */
export function countClient(registry: Registry, target: 'local' | 'peer'): ClientMetrics {
  const watches = new Map<symbol, { readonly kind: string; readonly ageMs: () => number }>();
  registry.collect(processMetrics.watchAge, () => {
    const oldest = new Map<string, number>();
    for (const { kind, ageMs } of watches.values()) oldest.set(kind, Math.max(oldest.get(kind) ?? 0, ageMs() / 1_000));
    return [...oldest].map(([kind, seconds]) => [{ target, kind }, seconds] as const);
  });
  return {
    requested: (verb, status) => registry.add(processMetrics.requests, { target, verb, code: String(status) }),
    watching(kind, ageMs) {
      const id = Symbol(kind);
      watches.set(id, { kind, ageMs });
      return () => void watches.delete(id);
    },
  };
}

export const countControllers = (registry: Registry): ControllerMetrics => ({
  reconciled(controller, outcome, seconds) {
    registry.observe(controllerMetrics.duration, { controller }, seconds);
    registry.add(controllerMetrics.passes, { controller, outcome });
  },
  queued: (controller, depth) => registry.set(controllerMetrics.queue, { controller }, depth),
});
