/** isthmus cordon, uncordon, drain: what a provider does with consumers and their slices. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type KubeClient, openCluster } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import { consumerOf, findGuestSlice, findTenant } from '#cli/offload/guests.ts';
import { parseDuration } from '#cli/output/duration.ts';
import type { CliIo } from '#cli/output/io.ts';
import { createProgress, during } from '#cli/output/progress.ts';
import { annotation, isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
import { changingKubeconfigOption, contextOption } from './kubeconfig-option.ts';
import { timeoutMsOf, timeoutOption } from './options.ts';

interface Target {
  readonly kubeconfig: string;
  readonly context?: string;
  readonly consumer?: string;
}
interface DrainTarget extends Target {
  readonly timeout: string;
  readonly forceAfter: string;
}

const onTenant = (description: string): Command =>
  new Command('tenant')
    .description(description)
    .argument('<name>', 'cluster ID of the consumer, or name of its Tenant')
    .addOption(changingKubeconfigOption())
    .addOption(contextOption());
const onSlice = (description: string): Command =>
  new Command('slice')
    .description(description)
    .argument('<name>', 'name of the ResourceSlice')
    .addOption(changingKubeconfigOption())
    .addOption(contextOption())
    .option('--consumer <id>', 'whose slice, where several consumers have one of this name');

const refOf = ({ metadata }: Tenant | ResourceSlice) => ({ namespace: metadata.namespace ?? '', name: metadata.name });

async function setCondition(
  io: CliIo,
  name: string,
  target: Target,
  tenantCondition: string,
): Promise<[KubeClient, Tenant]> {
  const kube = await openCluster(target, io);
  const tenant = await findTenant(kube, name);
  await kube.mergePatch(tenants, refOf(tenant), { spec: { tenantCondition } });
  return [kube, tenant];
}

async function annotate(
  io: CliIo,
  name: string,
  target: Target,
  annotations: Readonly<Record<string, string | null>>,
): Promise<[KubeClient, ResourceSlice]> {
  const kube = await openCluster(target, io);
  const slice = await findGuestSlice(kube, name, target.consumer);
  await kube.mergePatch(resourceSlices, refOf(slice), { metadata: { annotations } });
  return [kube, slice];
}

export const cordonCommand = (io: CliIo): Command =>
  new Command('cordon')
    .addCommand(
      onTenant('no new pods, slices or larger grants for one consumer').action(async (name: string, target: Target) => {
        const [, { spec }] = await setCondition(io, name, target, 'Cordoned');
        io.stdout.write(`consumer ${spec.clusterID} is cordoned: its pods stay, new ones are refused\n`);
      }),
    )
    .addCommand(
      onSlice('no new pods in one slice of a consumer').action(async (name: string, target: Target) => {
        const [, slice] = await annotate(io, name, target, { [annotation.cordon]: 'true' });
        io.stdout.write(`slice ${name} of ${consumerOf(slice)} is cordoned: its pods stay, new ones are refused\n`);
      }),
    );

export const uncordonCommand = (io: CliIo): Command =>
  new Command('uncordon')
    .addCommand(
      onTenant('let one consumer in again').action(async (name: string, target: Target) => {
        const [, { spec }] = await setCondition(io, name, target, 'Active');
        io.stdout.write(`consumer ${spec.clusterID} is active\n`);
      }),
    )
    .addCommand(
      onSlice('let pods into one slice again').action(async (name: string, target: Target) => {
        const none = { [annotation.cordon]: null, [isthmusAnnotation.drain]: null };
        const [, slice] = await annotate(io, name, target, none);
        io.stdout.write(`slice ${name} of ${consumerOf(slice)} takes pods\n`);
      }),
    );

const forceOption = (): Option =>
  new Option('--force-after <duration>', 'delete the pods that are left after so long; never: wait for the consumer')
    .default('10m')
    .argParser((text: string) => {
      if (text !== 'never' && parseDuration(text) === undefined)
        throw new InvalidArgumentError('Accepted are durations like 30s, 5m or 1h, and never.');
      return text;
    });

export const drainCommand = (io: CliIo): Command =>
  new Command('drain')
    .addCommand(
      onTenant('take everything back from one consumer: rights, slices, namespaces')
        .addOption(timeoutOption('5m'))
        .action((name: string, target: DrainTarget) => drainTenant(io, name, target)),
    )
    .addCommand(
      onSlice('take one slice back: the consumer empties its node, with regard to disruption budgets')
        .addOption(forceOption())
        .addOption(timeoutOption('15m'))
        .action((name: string, target: DrainTarget) => drainSlice(io, name, target)),
    );

async function drainTenant(io: CliIo, name: string, target: DrainTarget): Promise<void> {
  const [kube, { metadata, spec }] = await setCondition(io, name, target, 'Drained');
  let left: string[] = [];
  await during(createProgress(io), `draining consumer ${spec.clusterID}`, (step) =>
    poll(
      io,
      timeoutMsOf(target),
      async () => {
        const slices = (await kube.list(resourceSlices)).filter((one) => one.metadata.namespace === metadata.namespace);
        left = slices.filter((slice) => consumerOf(slice) === spec.clusterID).map((slice) => slice.metadata.name);
        step.update(`slices left: ${left.join(', ')}`);
        return left.length === 0 ? true : undefined;
      },
      () => late(`consumer ${spec.clusterID} still has ${left.join(', ')}`),
    ),
  );
  io.stdout.write(`consumer ${spec.clusterID} is drained\n`);
}

async function drainSlice(io: CliIo, name: string, target: DrainTarget): Promise<void> {
  const after = target.forceAfter === 'never' ? undefined : parseDuration(target.forceAfter);
  const value = after === undefined ? 'true' : new Date(io.clock.now() + after).toISOString();
  const [kube, slice] = await annotate(io, name, target, { [isthmusAnnotation.drain]: value });
  const namespace = slice.metadata.namespace ?? '';
  const selector = `${label.resourceSliceName}=${name},${label.remoteClusterId}=${consumerOf(slice)}`;
  let left = '?';
  await during(createProgress(io), `draining slice ${name} of ${consumerOf(slice)}`, (step) =>
    poll(
      io,
      timeoutMsOf(target),
      async () => {
        const current = await kube.get(resourceSlices, { namespace, name });
        const denied = current?.status?.conditions?.some((one) => one.type === 'Resources' && one.status === 'Denied');
        const [quota] = (await kube.list(quotas, selector)).filter((one) => one.metadata.namespace === namespace);
        left = String(quota?.status?.used?.pods ?? (quota === undefined ? '0' : '?'));
        step.update(`${left} pods are left`);
        return current === undefined || (denied && left === '0') ? true : undefined;
      },
      () => late(`slice ${name} of ${consumerOf(slice)} still has ${left} pods`),
    ),
  );
  io.stdout.write(`slice ${name} of ${consumerOf(slice)} is drained\n`);
}

const late = (message: string): AppError =>
  new AppError('deadline_exceeded', `${message}; the drain goes on without this command`, {
    detail: { remedy: 'wait longer with --timeout; see the pods with `kubectl get shadowpods -A`' },
  });
