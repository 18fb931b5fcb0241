/** Single steps and looks of tests on the clusters of a storage stage: claims of both clusters, the pods that use them, and what the provider keeps. */
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type ClusterName, consumer, isReady, patience, provider, type Stage } from '../whole-clusters/stage.ts';
import { readClaim, shop } from './storage-stage.ts';

/** `on` is asked when a step is taken. */
export function actsOn(on: () => Stage) {
  const kubectl = (cluster: ClusterName, ...args: readonly string[]): Promise<string> =>
    on()
      .world.cluster(cluster)
      .kubectl(...args);
  const claimAt = (cluster: ClusterName, namespace: string, name: string): Promise<PersistentVolumeClaim | undefined> =>
    on().api(cluster).get(persistentVolumeClaims, { namespace, name });
  return {
    kubectl,
    claimAt,
    /** The node of a pod of the consumer, once it is Ready. */
    async ready(name: string): Promise<string | undefined> {
      return (await on().podThat(consumer, [shop, name], 'is ready', isReady)).spec?.nodeName;
    },
    removePod: (name: string): Promise<string> => kubectl(consumer, '-n', shop, 'delete', 'pod', name, '--wait'),
    read: (name: string, claimName: string, more?: object, at?: readonly [ClusterName, string]) =>
      readClaim(on(), name, claimName, more, at),
    bound: (cluster: ClusterName, namespace: string, name: string): Promise<PersistentVolumeClaim> =>
      eventually(
        `claim ${namespace}/${name} of ${cluster} is Bound`,
        async () => {
          const found = await claimAt(cluster, namespace, name);
          if (found?.status?.phase === 'Bound') return found;
          throw new Error(JSON.stringify(found?.status ?? 'absent'));
        },
        patience,
      ),
    /** `isthmus volume` at the provider. */
    volumeTool: (...args: readonly string[]): Promise<string> =>
      on().world.mustIsthmus('volume', ...args, '--kubeconfig', on().world.cluster(provider).kubeconfigPath),
    /** The one record at the provider of this claim. */
    retained: (name: string) =>
      eventually(
        `a RetainedVolume of claim ${name}`,
        async () => {
          const all = await on().api(provider).list(retainedVolumes);
          const found = all.find(({ spec }) => spec.claim?.namespace === shop && spec.claim.name === name);
          if (found) return found;
          throw new Error(JSON.stringify(all.map(({ spec, status }) => ({ spec, status }))));
        },
        patience,
      ),
  };
}
