/** What a pod takes from a quota, by the scheduler's own arithmetic, in exact integers of 10^-9 units. */

import type { PodSpec } from './kube-object.ts';
import { formatQuantity, type Nanos, type Resources, tryParseQuantity } from './quantity.ts';

type Container = PodSpec['containers'][number];
/** Resource name to amount. */
export type Amounts = Readonly<Record<string, Nanos>>;

const onePod: Nanos = 1_000_000_000n;

/** For messages: `1500m`, `2Gi`; binary where that is exact and people write it so (memory, storage). */
export const showAmount = (resource: string, amount: Nanos): string =>
  formatQuantity(amount, /memory|storage|hugepages/.test(resource) ? 'binary' : 'decimal');

/** A quantity that cannot be counted: not a quantity, or negative (which would give quota back). */
export interface QuantityProblem {
  readonly field: string;
  readonly value: string;
}

const lists = (spec: PodSpec): readonly (readonly [string, readonly Container[]])[] => [
  ['containers', spec.containers ?? []],
  ['initContainers', spec.initContainers ?? []],
];

/** Every place of a pod spec that names an amount. */
function* quantityFields(spec: PodSpec): Generator<readonly [string, Resources | undefined]> {
  for (const [list, containers] of lists(spec)) {
    for (const { name, resources } of containers) {
      yield [`${list}[${name}].resources.requests`, resources?.requests];
      yield [`${list}[${name}].resources.limits`, resources?.limits];
    }
  }
  yield ['resources.requests', spec.resources?.requests];
  yield ['resources.limits', spec.resources?.limits];
  yield ['overhead', spec.overhead];
}

export function quantityProblem(spec: PodSpec): QuantityProblem | undefined {
  for (const [field, quantities] of quantityFields(spec)) {
    for (const [resource, value] of Object.entries(quantities ?? {})) {
      const amount = tryParseQuantity(value);
      if (amount === undefined || amount < 0n) return { field: `${field}.${resource}`, value: String(value) };
    }
  }
  return undefined;
}

/** What cannot be parsed or is negative counts as zero here; `quantityProblem` is asked first where it matters. */
export function amountsOf(quantities: Resources | undefined): Amounts {
  return Object.fromEntries(
    Object.entries(quantities ?? {}).map(([resource, value]) => {
      const amount = tryParseQuantity(value) ?? 0n;
      return [resource, amount > 0n ? amount : 0n];
    }),
  );
}

export const addAmounts = (a: Amounts, b: Amounts): Amounts => merge(a, b, (x, y) => x + y);
const maxAmounts = (a: Amounts, b: Amounts): Amounts => merge(a, b, (x, y) => (x > y ? x : y));

function merge(a: Amounts, b: Amounts, join: (x: bigint, y: bigint) => bigint): Amounts {
  const out = new Map(Object.entries(a));
  for (const [resource, amount] of Object.entries(b)) out.set(resource, join(out.get(resource) ?? 0n, amount));
  return Object.fromEntries(out);
}

/** The API server fills an absent request from the limit when the Pod is made, so a limit alone takes quota too. */
const requestsOf = ({ resources }: Pick<Container, 'resources'>): Amounts => ({
  ...amountsOf(resources?.limits),
  ...amountsOf(resources?.requests),
});

const isSidecar = (container: Container): boolean => container.restartPolicy === 'Always';

/**
 * Requests of the whole pod: the larger of what runs at last (containers and sidecars) and what runs while initialising (each init
 * container beside the sidecars started before it), and of the pod-level requests; overhead comes on top. Where an API server knows pod-level requests it
 * refuses those below the sum. Where it does not, it drops them, and the containers are what runs.
 */
export function podRequests(spec: PodSpec): Amounts {
  let sidecars: Amounts = {};
  let starting: Amounts = {};
  for (const container of spec.initContainers ?? []) {
    const beside = addAmounts(sidecars, requestsOf(container));
    starting = maxAmounts(starting, beside);
    if (isSidecar(container)) sidecars = beside;
  }
  const running = (spec.containers ?? []).map(requestsOf).reduce(addAmounts, sidecars);
  const summed = maxAmounts(running, starting);
  return addAmounts(maxAmounts(summed, requestsOf({ resources: spec.resources ?? {} })), amountsOf(spec.overhead));
}

/** What one pod consumes of a quota: its requests, and one of `pods`. */
export const podUsage = (spec: PodSpec): Amounts => addAmounts(podRequests(spec), { pods: onePod });
