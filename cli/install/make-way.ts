/** Before anything is written: what an earlier installation left behind, and what is still going of it. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import type { CliIo } from '#cli/output/io.ts';
import { during, type Progress } from '#cli/output/progress.ts';
import { customResourceDefinitions, namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { crdName } from '#shared/schema/crd.ts';
import { removeOrphanedWebhooks } from './webhooks.ts';

/** `deadline` by the clock of `io`. Fails with `deadline_exceeded` that names what does not go away. */
export async function makeWay(io: CliIo, progress: Progress, kube: KubeClient, deadline: number): Promise<void> {
  const repaired = await removeOrphanedWebhooks(kube);
  if (repaired !== undefined) progress.note(repaired);
  let going = await beingDeleted(kube);
  if (going.length === 0) return;
  await during(progress, 'an earlier installation is being removed', (step) =>
    poll(
      io,
      deadline - io.clock.now(),
      async () => {
        going = await beingDeleted(kube);
        step.update(going.length === 0 ? 'gone' : `waiting for ${going.join(', ')} to go`);
        return going.length === 0 ? true : undefined;
      },
      () =>
        new AppError('deadline_exceeded', `${going.join(', ')} of an earlier installation does not go away`, {
          detail: {
            remedy: `objects in it have finalizers: take them out with \`isthmus uninstall --purge\` (or \`isthmus leave NAME --purge --kubeconfig FILE\`), then repeat`,
          },
        }),
    ),
  );
}

/** Nothing can be made in a namespace, or of a kind, that is on its way out; and what can be applied to would go with it. */
async function beingDeleted(kube: KubeClient): Promise<string[]> {
  const isGoing = (object: KubeObject | undefined): boolean => object?.metadata.deletionTimestamp !== undefined;
  const names = new Set(allKinds.map(crdName));
  const own = [systemNamespace, storageNamespace];
  const found = await Promise.all(own.map((name) => kube.get<KubeObject>(namespaces, { name })));
  const crds = (await kube.list<KubeObject>(customResourceDefinitions)).filter(
    (crd) => names.has(crd.metadata.name) && isGoing(crd),
  );
  return [
    ...own.filter((_, at) => isGoing(found[at])).map((name) => `namespace ${name}`),
    ...crds.map(({ metadata }) => `CustomResourceDefinition ${metadata.name}`),
  ];
}
