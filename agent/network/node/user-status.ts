/** Reports in each FirewallConfiguration and RouteConfiguration how it fares on this node and in its gateway pods. */
import type { Cluster } from '#kube/model/types.ts';
import { abortScope } from '#shared/async/abort-scope.ts';
import { type KubeObject, keyOf, type ResourceType } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { HostCondition } from '#shared/schema/liqo/host-conditions.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { Refusal } from '../kernel/kernel-state.ts';
import type { UserFirewall, UserRoutes } from '../kernel/user-configurations.ts';
import type { NodeAgentObjects } from '../objects/objects.ts';
import { type HostOutcome, withHost } from './host-conditions.ts';

export interface UserStatus {
  /** After a pass: `targets` (from `targetsOf`) were wanted in the namespace of `host`, and of them `failed` not taken. */
  fared(host: string, targets: readonly string[], failed: readonly Refusal[]): void;
  /** The namespace of `host` is no longer ours. */
  gone(host: string): void;
  /** Objects changed. */
  look(): void;
  /** Returns when the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

type Configured = KubeObject & { status?: { conditions?: HostCondition[] | undefined } };

const key = (kind: string, name: string): string => `${kind} ${name}`;

export const targetsOf = (model: {
  readonly firewalls: readonly UserFirewall[];
  readonly routes: readonly UserRoutes[];
}): readonly string[] => [
  ...model.firewalls.map(({ name }) => key('FirewallConfiguration', name)),
  ...model.routes.map(({ name }) => key('RouteConfiguration', name)),
];

interface Report {
  readonly targets: ReadonlySet<string>;
  /** Message by namespace/name; a configuration of either kind, as the plan reports it. */
  readonly failed: ReadonlyMap<string, string>;
}

/** Many hosts write into the same list: after a write conflict, the loser reads it again so soon. */
const againMs = 300;

export function createUserStatus(
  { cluster, clock, log }: { readonly cluster: Cluster; readonly clock: Clock; readonly log: Log },
  objects: () => NodeAgentObjects,
): UserStatus {
  /** Undefined: the host left, and its entries have to go. */
  const reports = new Map<string, Report | undefined>();
  let dirty = false;
  let wake: (() => void) | undefined;

  function look(): void {
    dirty = true;
    wake?.();
  }

  const outcomeOf = (report: Report | undefined, kind: string, name: string): HostOutcome => {
    if (report === undefined || !report.targets.has(key(kind, name))) return undefined;
    const message = report.failed.get(name);
    return message === undefined ? { applied: true } : { applied: false, message };
  };

  async function writeAll(signal: AbortSignal): Promise<boolean> {
    const all = objects();
    const hosts = new Set([...all.nodes, ...all.gatewayPods].map(({ metadata }) => metadata.name));
    const write = async <T extends Configured>(type: ResourceType<T>, list: readonly T[]): Promise<boolean> => {
      let settled = true;
      for (const object of list) {
        const before = object.status?.conditions;
        let after: readonly HostCondition[] = before ?? [];
        for (const [host, report] of reports)
          after = withHost(
            after,
            host,
            outcomeOf(report, type.kind, keyOf(object)),
            (name) => hosts.has(name),
            clock.now(),
          );
        if (after.length === (before?.length ?? 0) && after.every((entry, index) => entry === before?.[index]))
          continue;
        settled = (await update(type, object, after, signal)) && settled;
      }
      return settled;
    };
    const firewalls = await write(networkKinds.firewallConfigurations, all.firewalls);
    return (await write(networkKinds.routeConfigurations, all.routes)) && firewalls;
  }

  async function update<T extends Configured>(
    type: ResourceType<T>,
    object: T,
    conditions: readonly HostCondition[],
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      await cluster.api.update(
        type,
        { ...object, status: { ...object.status, conditions } },
        { subresource: 'status' },
        signal,
      );
      const fresh = conditions.find((entry) => entry.type === 'Error' && !object.status?.conditions?.includes(entry));
      if (fresh !== undefined)
        cluster.events.emit(object, 'Warning', 'NotTaken', `${fresh.host}: ${fresh.message ?? 'not taken'}`);
      return true;
    } catch (error) {
      const code = codeOf(error);
      if (signal.aborted || code === 'kube_not_found') return true;
      if (code !== 'kube_conflict')
        log.warn('the status of a configuration was not written', { code, name: keyOf(object) });
      return false;
    }
  }

  return {
    look,
    fared(host, targets, failed) {
      reports.set(host, {
        targets: new Set(targets),
        failed: new Map(failed.map(({ configuration, message }) => [configuration, message])),
      });
      look();
    },
    gone(host) {
      reports.set(host, undefined);
      look();
    },
    async run(signal) {
      while (!signal.aborted) {
        const nap = abortScope(signal);
        wake = () => nap.abort();
        if (!dirty) await clock.sleep(60_000, nap.signal).catch(() => undefined);
        wake = undefined;
        nap.unlink();
        dirty = false;
        if (signal.aborted) return;
        const settled = await writeAll(signal);
        // What was written comes back by the watch; until then it would be written again.
        await clock.sleep(againMs, signal).catch(() => undefined);
        if (!settled) dirty = true;
      }
    },
  };
}
