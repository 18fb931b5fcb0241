/** Consumers and their slices as the provider's cluster has them: which one a command means. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';

const listText = (names: readonly string[]): string => [...new Set(names)].sort().join(', ') || 'none';

/** By cluster ID of the consumer, or by name of the Tenant. */
export async function findTenant(kube: KubeClient, name: string): Promise<Tenant> {
  const all = await kube.list(tenants);
  const found = all.find(({ spec }) => spec.clusterID === name) ?? all.find(({ metadata }) => metadata.name === name);
  if (found !== undefined) return found;
  throw new AppError('not_found', `the cluster at ${kube.server} has no consumer ${name}`, {
    detail: { field: 'name', value: name, accepted: all.map(({ spec }) => spec.clusterID) },
  });
}

export const consumerOf = ({ metadata }: ResourceSlice): string => metadata.labels?.[label.originId] ?? '';
export const isGuestSlice = ({ metadata }: ResourceSlice): boolean => metadata.labels?.[label.replicated] === 'true';

/** Of the slices that consumers have here, the one of this name; `consumer` where several have it. */
export async function findGuestSlice(kube: KubeClient, name: string, consumer?: string): Promise<ResourceSlice> {
  const all = (await kube.list(resourceSlices)).filter(isGuestSlice);
  const named = all.filter(
    (slice) => slice.metadata.name === name && (consumer === undefined || consumerOf(slice) === consumer),
  );
  const [only, second] = named;
  if (only === undefined) {
    const known = all.map((slice) => `${slice.metadata.name} of ${consumerOf(slice)}`);
    throw new AppError(
      'not_found',
      `no consumer${consumer === undefined ? '' : ` ${consumer}`} has a slice ${name} at the cluster at ${kube.server}; there are ${listText(known)}`,
      { detail: { field: 'name', value: name, remedy: 'name the cluster that gives capacity with --kubeconfig' } },
    );
  }
  if (second !== undefined) {
    throw new AppError('invalid_input', `several consumers have a slice ${name}: ${listText(named.map(consumerOf))}`, {
      detail: { field: 'consumer', value: consumer, accepted: named.map(consumerOf), remedy: 'add --consumer ID' },
    });
  }
  return only;
}
