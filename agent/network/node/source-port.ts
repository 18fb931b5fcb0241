/** From which UDP port a gateway dials: its own, or after long silence any other. Servers keep theirs, which is what their peers dial. */
import { abortScope } from '#shared/async/abort-scope.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { TunnelStatus } from '../kernel/wireguard.ts';
import { dialTiming, type SourcePort } from '../link/tunnel/decide.ts';
import type { NamespaceReconciler } from './namespace-reconciler.ts';

/** The dynamic range of RFC 6335, which no service owns, and never the usual port of a gateway, 51840. */
const dynamic = { first: 52_000, count: 13_000 } as const;
/** How long the device may take. */
const moveMs = 2_000;

export interface SourcePortKeeper {
  /** Undefined: the gateway's own. */
  now(): number | undefined;
  which(): SourcePort;
  /** Resolves once the device has it, or should have it. */
  move(to: SourcePort, reconciler: Pick<NamespaceReconciler, 'applied'>, signal: AbortSignal): Promise<void>;
}

export function createSourcePort(clock: Clock, random: () => number, found: number | undefined): SourcePortKeeper {
  let port = found;
  return {
    now: () => port,
    which: () => (port === undefined ? 'own' : 'another'),
    async move(to, reconciler, signal) {
      port = to === 'own' ? undefined : dynamic.first + Math.floor(random() * dynamic.count);
      const life = abortScope(signal);
      try {
        await Promise.race([reconciler.applied(life.signal), clock.sleep(moveMs, life.signal)]);
      } finally {
        life.abort();
        life.unlink();
      }
    },
  };
}

/** Of a session that a former node process moved there: it is left alone. */
export function portInUse({ listenPort, peers }: TunnelStatus, now: number): number | undefined {
  const isOther = listenPort >= dynamic.first && listenPort < dynamic.first + dynamic.count;
  const isAlive = peers.some(({ lastHandshakeMs = 0 }) => now - lastHandshakeMs < dialTiming.sessionMs);
  return isOther && isAlive ? listenPort : undefined;
}
