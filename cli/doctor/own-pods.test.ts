import { expect, test } from 'vitest';
import type { KubeObject, Namespace, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { networkLabel, nodeProcess, nodeProcessLabel } from '#shared/domain/network-keys.ts';
import { type List, ownPodsOf, tenantNamespacesOf } from './own-pods.ts';

const pod = (namespace: string, name: string, labels: Readonly<Record<string, string>> = {}): Pod =>
  ({ metadata: { namespace, name, labels } }) as unknown as Pod;
const gateway = { [networkLabel.component]: 'gateway' };
const all = [
  pod(systemNamespace, 'isthmus-agent'),
  pod(systemNamespace, 'isthmus-fabric', { [nodeProcessLabel]: nodeProcess.own }),
  pod('liqo-tenant-rome', 'gw-rome', gateway),
  pod('liqo-tenant-rome', 'other'),
  pod('shop-rome', 'guest-as-gateway', gateway),
  pod('shop-rome', 'guest-as-node-process', { [nodeProcessLabel]: nodeProcess.own }),
];

/** As an API server: by labels, with or without a value, and by namespace. */
const list: List = async <T extends KubeObject>(_type: ResourceType<T>, selector?: string, namespace?: string) => {
  const [key = '', value] = (selector ?? '').split('=');
  return all.filter(
    ({ metadata }) =>
      (namespace === undefined || metadata.namespace === namespace) &&
      (selector === undefined ||
        (value === undefined ? key in (metadata.labels ?? {}) : metadata.labels?.[key] === value)),
  ) as unknown as T[];
};

test('pods of guests that carry the labels of gateways or node processes are not taken for pods of Isthmus', async () => {
  const namespaces = [
    {
      metadata: {
        name: 'liqo-tenant-rome',
        labels: { [label.tenantNamespace]: 'true', [label.remoteClusterId]: 'rome' },
      },
    },
    { metadata: { name: 'shop-rome', labels: { [label.remoteClusterId]: 'rome' } } },
  ] as unknown as Namespace[];
  const found = await ownPodsOf(list, tenantNamespacesOf(namespaces));
  expect(found.map(({ metadata }) => metadata.name)).toEqual(['isthmus-agent', 'isthmus-fabric', 'gw-rome']);
});
