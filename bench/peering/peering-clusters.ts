/** Two joined clusters and the broker's REST API, for benches. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { send } from '#functions/local/scripted-agent.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { openProductClusters, type ProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import type { ClusterRequest } from '#test/testbed/spec.ts';
import { endOnInterrupt } from '../interrupt.ts';

export interface BenchClusters {
  readonly world: ProductClusters;
  readonly consumer: Cluster;
  readonly provider: Cluster;
  /** Asks the broker; rejects with its answer unless the status is below 400. */
  ask<T>(method: 'GET' | 'POST' | 'DELETE', route: string, body?: unknown): Promise<T>;
  /** What was started beside the clusters, and ends before them. */
  alsoEnd(end: () => Promise<void>): void;
  close(): Promise<void>;
}

export const names = { consumer: 'rome', provider: 'milan' } as const;

/** `cluster`: what both are asked to be. An interrupted bench takes them down. */
export async function openBenchClusters(
  root: string,
  log: (line: string) => void,
  cluster: Omit<ClusterRequest, 'name'> = {},
): Promise<BenchClusters> {
  const dir = path.join(root, '.build', 'bench-world');
  const clusters = [names.consumer, names.provider].map((name) => ({ name, ...cluster }));
  const stop = new AbortController();
  const started = endOnInterrupt(() => {
    stop.abort();
    return removeProductClusters({ root, dir, log });
  }, log);
  const fixture = await openProductClusters({ root, dir, clusters, log, brokerPort: 7543 });
  await Promise.all([fixture.join(names.consumer), fixture.join(names.provider)]);
  const open = async (name: string): Promise<Cluster> => {
    const connection = await connectKubeconfig(readFileSync(fixture.cluster(name).kubeconfigPath, 'utf8'));
    return openCluster(connection, { clock: systemClock, log: silentLog }, stop.signal);
  };
  const login = JSON.parse(readFileSync(path.join(dir, 'world', 'config.json'), 'utf8')) as {
    url: string;
    key: string;
    caPem: string;
  };
  return {
    world: fixture,
    consumer: await open(names.consumer),
    provider: await open(names.provider),
    async ask(method, route, body) {
      const headers: Record<string, string> = { authorization: `Bearer ${login.key}` };
      if (body !== undefined) headers['content-type'] = 'application/json';
      const text = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await send({ method, url: `${login.url}${route}`, ca: login.caPem, headers, ...text });
      if (answer.status >= 400)
        throw new Error(`${method} ${route} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    },
    alsoEnd: started.alsoEnd,
    close: started.close,
  };
}
