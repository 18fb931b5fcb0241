/** Why the image of a pod is not there, as soon as the kubelet says so: which image, on which node, and what to do. Pure. */
import type { Pod } from '#shared/domain/kube-object.ts';

/** What a kubelet says of a container whose image it cannot get. */
const reasons = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrImageNeverPull',
  'InvalidImageName',
  'ImageInspectError',
  'RegistryUnavailable',
]);

export interface PullTrouble {
  readonly image: string;
  readonly node: string;
  /** In the kubelet's words. */
  readonly said: string;
}

export function pullTroubleOf({ spec, status }: Pod): PullTrouble | undefined {
  for (const { name, image, state } of status?.containerStatuses ?? []) {
    const { reason = '', message = '' } = state?.waiting ?? {};
    if (!reasons.has(reason)) continue;
    const asked = spec?.containers.find((container) => container.name === name)?.image;
    return {
      image: asked ?? image,
      node: spec?.nodeName ?? '',
      said: message === '' ? reason : `${reason}: ${message}`,
    };
  }
  return undefined;
}

const pullText = ({ image, node, said }: PullTrouble): string => `node ${node} cannot get the image ${image}: ${said}`;

export const pullRemedy = ({ image }: PullTrouble): string =>
  `load ${image} into the container runtime of every node, or name with --image one that they can pull; in a checkout \`npm run image -- --push REF\` puts it into a registry, and \`npm run image -- --save agent.tar\` writes a file that \`ctr --namespace k8s.io images import agent.tar\` loads on each node`;

/** Reports each failure once, however often the kubelet retries and rewords it. */
export function createPullWatch(note: (text: string) => void): (pods: readonly Pod[]) => PullTrouble | undefined {
  const reported = new Set<string>();
  return (pods) => {
    let first: PullTrouble | undefined;
    for (const pod of pods) {
      const trouble = pullTroubleOf(pod);
      if (trouble === undefined) continue;
      first ??= trouble;
      const key = `${trouble.node}\0${trouble.image}`;
      if (reported.has(key)) continue;
      const isFirst = ![...reported].some((known) => known.endsWith(`\0${trouble.image}`));
      reported.add(key);
      note(pullText(trouble));
      if (isFirst) note(`to do: ${pullRemedy(trouble)}; this command goes on as soon as the image is there`);
    }
    return first;
  };
}
