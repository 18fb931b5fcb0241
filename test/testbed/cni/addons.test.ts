import { expect, test } from 'vitest';
import { findCni } from '#cli/platform/cni.ts';
import { clusterFacts } from '#cli/platform/known-clusters.ts';
import type { DaemonSet } from '#shared/domain/core-kinds.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { addonsOf } from '../addons.ts';
import { planCluster } from '../spec.ts';

test.each([
  ['flannel-host-gw', ['backend host-gw']],
  ['flannel-vxlan', ['backend vxlan']],
  ['vpc', ['AWS_VPC_K8S_CNI_EXTERNALSNAT=false']],
] as const)(
  'what a cluster with %s runs is told by its DaemonSet and settings, as on clusters of others',
  (cni, told) => {
    const objects = addonsOf(planCluster(0, 1, { name: 'rome', cni })).map(({ object }) => object as { kind: string });
    const sets = objects.filter((object): object is DaemonSet => object.kind === 'DaemonSet');
    const maps = objects.filter((object): object is ConfigMap => object.kind === 'ConfigMap');
    const facts = clusterFacts({
      daemonSets: sets.map(({ metadata, spec }) => ({
        namespace: metadata.namespace ?? '',
        name: metadata.name,
        env: Object.fromEntries(
          (spec?.template.spec?.containers ?? []).flatMap(({ env = [] }) =>
            env.map(({ name, value = '' }) => [name, value] as const),
          ),
        ),
      })),
      settings: Object.fromEntries(
        maps.map(({ metadata: { namespace, name }, data = {} }) => [`${namespace}/${name}`, data] as const),
      ),
    });
    expect(findCni(facts)?.settings).toEqual(told);
  },
);
