/** The usage pages of a virtual node. Where the provider runs Liqo's metric agent, its kubelet pages are passed on, reduced to our pods. */
import type { Cache } from '#kube/model/types.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { ProviderSession } from '../virtual-node/provider-session.ts';
import { cadvisorText, type FindPod, resourceText, summary } from './metrics-text.ts';
import { PodUsageReader, type UsageDeps } from './pod-usage.ts';
import type { UsagePage } from './routes.ts';

export interface UsagePagesDeps extends Omit<UsageDeps, 'has'> {
  readonly nodeName: string;
  readonly consumer: string;
  readonly find: FindPod;
}

/** Name, raw value and what follows, at a position in a line. It reads each character once, so that hostile input costs linear time. */
const labelAt = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"([,}])/y;

/** The labels by which a sample is of a pod; undefined: it is not. */
function podOf(line: string): { readonly namespace: string; readonly pod: string } | undefined {
  const found: { namespace?: string; pod?: string } = {};
  labelAt.lastIndex = line.indexOf('{') + 1;
  for (let label = labelAt.exec(line); label !== null; label = labelAt.exec(line)) {
    const [, name, value = '', follows] = label;
    if (name === 'namespace' || name === 'pod') found[name] = value;
    if (follows === '}') break;
  }
  const { namespace, pod } = found;
  return namespace === undefined || pod === undefined ? undefined : { namespace, pod };
}

/** Of Prometheus text, what is about pods that `has` knows. A family without samples keeps its comments: harmless. */
export function onlyPods(text: string, has: (namespace: string, pod: string) => boolean): string {
  const kept = text.split('\n').filter((line) => {
    if (line.startsWith('#')) return true;
    const of = podOf(line);
    return of !== undefined && has(of.namespace, of.pod);
  });
  return kept.length === 0 ? '' : `${kept.join('\n')}\n`;
}

export class UsagePages {
  readonly #deps: UsagePagesDeps;
  readonly #reader: PodUsageReader;

  constructor(deps: UsagePagesDeps) {
    this.#deps = deps;
    this.#reader = new PodUsageReader({ ...deps, has: this.#has });
  }

  readonly #has = (namespace: string, pod: string): boolean => this.#deps.find(namespace, pod) !== undefined;

  async page(page: UsagePage, signal: AbortSignal): Promise<string> {
    const { find, nodeName } = this.#deps;
    switch (page) {
      case 'summary':
        return JSON.stringify(summary(await this.#reader.read(signal), nodeName, find));
      case 'resource':
        return resourceText(await this.#reader.read(signal), find);
      case 'cadvisor':
        return (await this.#scraped(page, signal)) ?? cadvisorText(await this.#reader.read(signal), find);
      case 'probes':
        return (await this.#scraped(page, signal)) ?? '# the provider does not tell what probes of pods came to\n';
      case 'kubelet':
        return '# a virtual node has no kubelet of its own; see /metrics/resource\n';
    }
  }

  /** Undefined where the provider has no such API, does not let us, or fails at it. */
  #scraped(page: string, signal: AbortSignal): Promise<string | undefined> {
    const path = `/apis/metrics.liqo.io/v1beta1/scrape/${this.#deps.consumer}/metrics/${page}`;
    return this.#deps.getPath(path, signal).then(
      (text) => onlyPods(text, this.#has),
      () => undefined,
    );
  }
}

/** Of the node `nodeName`, through its current connection. */
export const usagePagesOf = (
  nodeName: string,
  { clusterId, clock }: { readonly clusterId: string; readonly clock: Clock },
  localPods: Cache<Pod>,
  session: () => ProviderSession | undefined,
): UsagePages =>
  new UsagePages({
    nodeName,
    consumer: clusterId,
    clock,
    labelSelector: `${label.nodeName}=${nodeName}`,
    namespaces: () => session()?.followed() ?? [],
    getPath: async (path, signal) => {
      const api = session()?.provider.api;
      if (!api) throw new AppError('kube_unreachable', `node ${nodeName} has no connection to its provider`);
      return api.getPath(path, signal);
    },
    find: (namespace, name) => localPods.get({ namespace, name }),
  });
