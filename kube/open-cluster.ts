/** Puts together everything a controller gets about one cluster. */
import type { Random } from '#shared/async/backoff.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { type CachesOptions, createCaches } from './cache/informer-factory.ts';
import { createKubeApi, type KubeApiOptions } from './http/client.ts';
import type { ClusterConnection } from './http/connection.ts';
import type { ClientMetrics } from './model/metrics.ts';
import type { Cluster } from './model/types.ts';
import { createEventRecorder } from './run/event-recorder.ts';

export interface OpenClusterDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: Random;
  readonly metrics?: ClientMetrics;
}

export interface OpenClusterOptions extends KubeApiOptions, CachesOptions {
  /** The author that events name: `isthmus-agent` by default. */
  readonly reportingController?: string;
  /** Which replica: the pod's name. */
  readonly reportingInstance?: string;
}

/** Caches and the event recorder stop when `signal` aborts; closing the connection is the caller's. */
export function openCluster(
  connection: ClusterConnection,
  deps: OpenClusterDeps,
  signal: AbortSignal,
  options: OpenClusterOptions = {},
): Cluster {
  const api = createKubeApi(connection, deps, options);
  const reportingController = options.reportingController ?? 'isthmus-agent';
  return {
    api,
    caches: createCaches(connection, deps, signal, options),
    events: createEventRecorder(
      { api, ...deps },
      { reportingController, reportingInstance: options.reportingInstance ?? reportingController },
      signal,
    ),
  };
}
