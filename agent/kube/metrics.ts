/** What the agent counts, in one table, and a registry that is loaded only when somebody will read it. */
import type { Outcome } from '#shared/domain/outcome.ts';
import type { ControllerMetrics } from './controller.ts';

export const metric = {
  reconciles: {
    name: 'isthmus_reconcile_total',
    help: 'Passes of a controller, by what they came to.',
    labels: ['controller', 'outcome'],
  },
  seconds: {
    name: 'isthmus_reconcile_seconds',
    help: 'How long a pass took.',
    labels: ['controller'],
  },
  queued: {
    name: 'isthmus_queue_depth',
    help: 'Keys that wait for a worker.',
    labels: ['controller'],
  },
} as const;

export interface Metrics extends ControllerMetrics {
  readonly contentType: string;
  /** The Prometheus text form of everything counted so far. */
  text(): Promise<string>;
}

const outcomes: readonly (Outcome['kind'] | 'error')[] = ['settled', 'again', 'waiting', 'stalled', 'error'];

/** `controllers` start at zero, so that a rate exists from the first scrape on. */
export async function createMetrics(controllers: readonly string[] = []): Promise<Metrics> {
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client');
  const registry = new Registry();
  const registers = [registry];
  const reconciles = new Counter({ ...metric.reconciles, labelNames: metric.reconciles.labels, registers });
  const seconds = new Histogram({
    ...metric.seconds,
    labelNames: metric.seconds.labels,
    buckets: [0.005, 0.025, 0.1, 0.5, 2, 10],
    registers,
  });
  const queued = new Gauge({ ...metric.queued, labelNames: metric.queued.labels, registers });
  for (const controller of controllers) for (const outcome of outcomes) reconciles.inc({ controller, outcome }, 0);
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    reconciled(controller, outcome, took) {
      reconciles.inc({ controller, outcome });
      seconds.observe({ controller }, took);
    },
    queued: (controller, depth) => queued.set({ controller }, depth),
  };
}
