/** What lies around two clusters: the cloud that gives a load balancer its address, and a server somewhere in the internet. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as timer } from 'node:timers/promises';
import { services } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { clusterNames, type Stage } from '../whole-clusters/stage.ts';

export interface Outside {
  readonly internet: { readonly ip: string; readonly port: number };
  /** As the machine that all of it runs on calls it: neither node nor pod. */
  fetchHere(url: string): Promise<boolean>;
  close(): Promise<void>;
}

export async function openOutside({ world: clusters, api }: Stage): Promise<Outside> {
  const server = createServer((_request, response) => response.end('far away\n'));
  await new Promise<void>((resolve) => server.listen(0, clusters.bed.hostAddress, resolve));
  const { address: ip, port } = server.address() as AddressInfo;
  const stop = new AbortController();
  const cloud = giveAddresses();

  /** Every load balancer gets the address of a node, as those of small installations do. */
  async function giveAddresses(): Promise<void> {
    while (!stop.signal.aborted) {
      for (const cluster of clusterNames)
        for (const service of await api(cluster).list(services)) {
          if (service.spec?.type !== 'LoadBalancer' || service.status?.loadBalancer?.ingress?.length) continue;
          const status = { loadBalancer: { ingress: [{ ip: clusters.cluster(cluster).nodes[0]?.ip }] } };
          await api(cluster).mergePatch(services, refOf(service), { status }, { subresource: 'status' });
        }
      await timer(500, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  }

  return {
    internet: { ip, port },
    async fetchHere(url) {
      try {
        return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok;
      } catch {
        return false;
      }
    },
    async close() {
      stop.abort();
      await cloud;
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
