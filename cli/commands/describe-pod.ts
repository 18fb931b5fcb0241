/** isthmus describe pod. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { openCluster } from '#cli/cluster/open.ts';
import { explainPod, podStoryText } from '#cli/offload/explain-pod.ts';
import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import { label, namespaceOffloadingName, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { contextOption, kubeconfigOption } from './kubeconfig-option.ts';

interface PodRef {
  readonly namespace: string;
  readonly name: string;
}

function podRef(text: string): PodRef {
  const [namespace, name, ...rest] = text.split('/');
  if (!namespace || !name || rest.length > 0) throw new InvalidArgumentError('Accepted is NAMESPACE/NAME.');
  return { namespace, name };
}

export const describePodCommand = (io: CliIo): Command =>
  new Command('pod')
    .description('why a pod is where it is, what it waits for, and at which side')
    .argument('<namespace/name>', 'pod of the consumer cluster', podRef)
    .addOption(kubeconfigOption())
    .addOption(contextOption())
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'))
    .addHelpText('after', '\nExamples:\n  isthmus describe pod demo/web-0 --kubeconfig rome.kubeconfig')
    .action(
      async (ref: PodRef, options: { kubeconfig: string; context?: string; output: 'text' | 'json' | 'yaml' }) => {
        const kube = await openCluster(options, io);
        const pod = await kube.get(pods, ref);
        if (pod === undefined) {
          throw new AppError(
            'not_found',
            `there is no pod ${ref.namespace}/${ref.name} in the cluster at ${kube.server}`,
            {
              detail: {
                remedy: `list them with \`kubectl -n ${ref.namespace} get pods\`; name it as the consumer does`,
              },
            },
          );
        }
        const name = pod.spec?.nodeName;
        const [node, offloading, virtualNodes] = await Promise.all([
          name === undefined ? undefined : kube.get(nodes, { name }),
          kube.get(namespaceOffloadings, { namespace: ref.namespace, name: namespaceOffloadingName }),
          kube.list(nodes, `${label.type}=${virtualNodeType}`),
        ]);
        const story = explainPod({ pod, node, offloading, virtualNodes });
        if (options.output === 'text') io.stdout.write(podStoryText(story));
        else printObject(io, options.output, story);
      },
    );
