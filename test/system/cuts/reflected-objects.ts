/** A thousand changes of reflected objects, and a watch that knows when the provider has them all. */
import type { Caches, KubeApi } from '#kube/model/types.ts';
import { configMaps, endpointSlices, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';

type Value = 'before' | 'after';
type Loose = KubeObject & Record<string, unknown>;

interface Good {
  readonly type: ResourceType<KubeObject>;
  readonly name: string;
  /** Undefined: it is not there. */
  readonly before: Value | undefined;
  readonly after: Value | undefined;
}

interface GoodKind {
  readonly type: ResourceType<KubeObject>;
  /** How many are changed, and how many of these are made and deleted instead. */
  readonly changes: number;
  readonly made: number;
  readonly deleted: number;
  content(value: Value, i: number): Record<string, unknown>;
  read(object: Loose): Value | undefined;
}

const serviceName = 'goods';
const ports = { before: 8001, after: 8002 } as const;
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const known = (text: unknown): Value | undefined => (text === 'before' || text === 'after' ? text : undefined);

function goodKinds(physicalNode: string, podRange: string): readonly GoodKind[] {
  const [a, b] = podRange.split('.');
  return [
    {
      type: configMaps as ResourceType<never>,
      ...{ changes: 500, made: 25, deleted: 25 },
      content: (value) => ({ data: { value } }),
      read: ({ data }) => known((data as { value?: string } | undefined)?.value),
    },
    {
      type: secrets as ResourceType<never>,
      ...{ changes: 250, made: 0, deleted: 0 },
      content: (value) => ({ data: { value: base64(value) } }),
      read: ({ data }) =>
        known(Buffer.from((data as { value?: string } | undefined)?.value ?? '', 'base64').toString()),
    },
    {
      type: endpointSlices as ResourceType<never>,
      ...{ changes: 250, made: 0, deleted: 0 },
      // An unused address of this cluster's pod range: no pod of the test is called.
      content: (value, i) => ({
        addressType: 'IPv4',
        ports: [{ name: 'http', port: ports[value], protocol: 'TCP' }],
        endpoints: [{ addresses: [`${a}.${b}.250.${i % 250}`], nodeName: physicalNode, conditions: { ready: true } }],
      }),
      read: (slice) => {
        const port = (slice.ports as readonly { port: number }[] | undefined)?.[0]?.port;
        return port === ports.before ? 'before' : port === ports.after ? 'after' : undefined;
      },
    },
  ];
}

/** Concurrency of a busy third-party controller. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: 20 }, worker));
}

export interface GoodsPlace {
  readonly namespace: string;
  /** Of the consumer. */
  readonly physicalNode: string;
  readonly podCidr: string;
}

export class Goods {
  readonly #api: KubeApi;
  readonly #namespace: string;
  readonly #kinds: readonly GoodKind[];
  readonly #all: readonly Good[];

  constructor(api: KubeApi, { namespace, physicalNode, podCidr }: GoodsPlace) {
    this.#api = api;
    this.#namespace = namespace;
    this.#kinds = goodKinds(physicalNode, podCidr);
    this.#all = this.#kinds.flatMap(({ type, changes, made, deleted }) =>
      Array.from({ length: changes }, (_, i) => ({
        type,
        name: `good-${i}`,
        before: i < made ? undefined : ('before' as const),
        after: i >= changes - deleted ? undefined : ('after' as const),
      })),
    );
  }

  get count(): number {
    return this.#all.length;
  }

  async make(): Promise<void> {
    const { name, ...rest } = { name: serviceName, spec: { ports: [{ name: 'http', port: 80 }] } };
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { namespace: this.#namespace, name }, ...rest };
    await this.#api.create(services, service as never);
    await inParallel(
      this.#all.filter(({ before }) => before !== undefined),
      (good) => this.#create(good, 'before'),
    );
  }

  /** The part of all changes from `from` to `to`, both between 0 and 1; the kinds take turns. */
  async change(from: number, to: number): Promise<void> {
    const mixed = this.#all.toSorted((one, other) => Number(one.name.slice(5)) - Number(other.name.slice(5)));
    const part = mixed.slice(Math.round(from * mixed.length), Math.round(to * mixed.length));
    await inParallel(part, async (good) => {
      const { type, name, before, after } = good;
      const ref = { namespace: this.#namespace, name };
      if (before === undefined) await this.#create(good, 'after');
      else if (after === undefined) await this.#api.delete(type, ref);
      else await this.#api.mergePatch(type, ref, this.#contentOf(good, after));
    });
  }

  /** Follows what the provider has of them; all ends with `signal`. */
  async follow(caches: Caches, namespace: string, signal: AbortSignal): Promise<Copies> {
    const copies = new Copies(this.#all);
    await Promise.all(
      this.#kinds.map(async ({ type, read }) => {
        const cache = caches.scoped(type, { namespace }, signal);
        cache.subscribe(({ before, after }) => {
          const object = (after ?? before) as Loose;
          copies.saw(type, object.metadata.name, after === undefined ? undefined : read(object));
          const endpoints = after && (object.endpoints as readonly Endpoint[] | undefined);
          if (endpoints) copies.sawReadiness(object.metadata.name, endpoints.every(isReady));
        });
        await cache.synced(signal);
      }),
    );
    return copies;
  }

  #contentOf({ type, name }: Good, value: Value): Record<string, unknown> {
    const kind = this.#kinds.find((one) => one.type === type) as GoodKind;
    return kind.content(value, Number(name.slice(5)));
  }

  async #create(good: Good, value: Value): Promise<void> {
    const { group, version, kind } = good.type;
    const labels = { 'kubernetes.io/service-name': serviceName };
    await this.#api.create(good.type, {
      apiVersion: group === '' ? version : `${group}/${version}`,
      kind,
      metadata: { namespace: this.#namespace, name: good.name, ...(kind === 'EndpointSlice' ? { labels } : {}) },
      ...this.#contentOf(good, value),
    } as never);
  }
}

interface Endpoint {
  readonly conditions?: { readonly ready?: boolean };
}
const isReady = ({ conditions }: Endpoint): boolean => conditions?.ready === true;

/** What the provider has, as its API server tells. */
export class Copies {
  readonly #wanted = new Map<string, Good>();
  readonly #has = new Map<string, Value>();
  readonly #unready = new Set<string>();
  /** When each became as it is, by its key. */
  readonly #at = new Map<string, number>();

  constructor(all: readonly Good[]) {
    for (const good of all) this.#wanted.set(`${good.type.kind} ${good.name}`, good);
  }

  saw(type: ResourceType<KubeObject>, name: string, value: Value | undefined): void {
    const key = `${type.kind} ${name}`;
    if (!this.#wanted.has(key) || this.#has.get(key) === value) return;
    if (value === undefined) this.#has.delete(key);
    else this.#has.set(key, value);
    this.#at.set(key, Date.now());
  }

  sawReadiness(name: string, ready: boolean): void {
    if (ready) this.#unready.delete(name);
    else this.#unready.add(name);
  }

  /** Those that are not (yet) as they shall be then. */
  differing(when: 'before' | 'after'): string[] {
    return [...this.#wanted].filter(([key, good]) => this.#has.get(key) !== good[when]).map(([key]) => key);
  }

  get allReady(): boolean {
    return this.#unready.size === 0;
  }

  /** Milliseconds from `since` until the first of them, half, 95 % and the last one were equal. */
  equalAfter(since: number): readonly [first: number, half: number, most: number, last: number] {
    const all = [...this.#at.values()].map((at) => at - since).sort((one, other) => one - other);
    const at = (part: number): number => all[Math.min(all.length - 1, Math.floor(part * all.length))] ?? 0;
    return [at(0), at(0.5), at(0.95), at(1)];
  }
}
