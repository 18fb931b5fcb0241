/** isthmus requests: ask other tenants for published clusters, and answer requests for yours. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { withBroker } from '#cli/broker/with-broker.ts';
import type { CliIo } from '#cli/output/io.ts';
import { type Format, printListing } from '#cli/output/print.ts';
import { paintFor, toneOf } from '#cli/output/style.ts';
import { resourcesText } from '#cli/peerings/describe.ts';
import { type PeeringRequest, RequestState } from '#shared/schema/api/cross-tenant.ts';
import {
  askedResources,
  clusterName,
  lifetime,
  outputOption,
  type ResourceOptions,
  resourceOptions,
} from './options.ts';
import { ruleCommand } from './requests-rule.ts';

export const requestsCommand = (io: CliIo): Command =>
  new Command('requests')
    .addCommand(listCommand(io))
    .addCommand(decisionCommand(io, 'approve'))
    .addCommand(decisionCommand(io, 'reject'))
    .addCommand(sendCommand(io))
    .addCommand(withdrawCommand(io))
    .addCommand(ruleCommand(io));

const listCommand = (io: CliIo): Command =>
  new Command('list')
    .description('requests that other tenants made of you')
    .option('--sent', 'those that you made, instead')
    .addOption(new Option('--state <state>', 'only those in this state').choices(RequestState.options))
    .addOption(outputOption())
    .action(({ output, sent, state }: { output: Format; sent?: boolean; state?: PeeringRequest['state'] }) =>
      withBroker(io, async (broker) => {
        const paint = paintFor(io.stdout, io.env);
        printListing(io, output, {
          items: await broker.all((page) =>
            broker.api.listRequests({ query: { ...page, direction: sent ? 'sent' : 'received', state } }),
          ),
          columns: [
            { head: 'id', cell: ({ id }) => id },
            { head: 'consumer', cell: (r) => (sent ? r.consumer : `${r.consumerTenant}/${r.consumer}`) },
            { head: 'provider', cell: (r) => (sent ? `${r.providerTenant}/${r.provider}` : r.provider) },
            { head: 'state', cell: (r) => r.state, paint: (text) => paint(toneOf(text), text) },
            { head: 'resources', cell: (r) => resourcesText(r.resources) || '-' },
            { head: 'class', cell: (r) => r.class },
            { head: 'expires', cell: ({ expiresAt }) => expiresAt },
            { head: 'reason', cell: ({ reason }) => reason || '-' },
            { head: 'answer', cell: ({ answer }) => answer || '-' },
          ],
          name: ({ id }) => `request/${id}`,
          none: sent ? 'no requests; see `isthmus directory list`' : 'no requests',
        });
      }),
    );

const decisionCommand = (io: CliIo, verb: 'approve' | 'reject'): Command =>
  new Command(verb)
    .description(verb === 'approve' ? 'agree to a request: the clusters are peered' : 'refuse a request')
    .argument('<id>', 'id of the request, rq_…')
    .option('--reason <text>', 'told to the tenant that asked')
    .action((id: string, { reason }: { reason?: string }) =>
      withBroker(io, async (broker) => {
        const input = { path: { request: id }, body: { reason } };
        const request = await (verb === 'approve' ? broker.api.approveRequest : broker.api.rejectRequest)(input, {
          repeatable: true,
        });
        io.stdout.write(`request ${request.id} is ${request.state}\n`);
        if (request.peering !== undefined)
          io.stderr.write(`follow it with: isthmus describe peering ${request.consumer} ${request.provider}\n`);
      }),
    );

function publishedCluster(text: string): { readonly tenant: string; readonly cluster: string } {
  const [tenant = '', cluster = '', ...rest] = text.split('/');
  if (tenant === '' || cluster === '' || rest.length > 0)
    throw new InvalidArgumentError('Accepted is TENANT/CLUSTER, as in isthmus directory list.');
  return { tenant, cluster: clusterName(cluster) };
}

interface SendOptions extends ResourceOptions {
  readonly class?: string;
  readonly reason?: string;
  readonly expiresIn?: number;
}

const sendCommand = (io: CliIo): Command =>
  resourceOptions(new Command('send'), 'to ask for')
    .description('ask another tenant for a published cluster')
    .argument('<consumer>', 'your cluster that gets the node', clusterName)
    .argument('<provider>', 'TENANT/CLUSTER, as in isthmus directory list', publishedCluster)
    .option('--class <name>', 'resource class at the provider')
    .option('--reason <text>', 'told to the tenant that is asked')
    .option('--expires-in <duration>', 'how long it may wait; default: 7d', lifetime)
    .action((consumer: string, provider: ReturnType<typeof publishedCluster>, options: SendOptions) =>
      withBroker(io, async (broker) => {
        const request = await broker.api.createRequest({
          body: {
            consumer,
            providerTenant: provider.tenant,
            provider: provider.cluster,
            resources: askedResources(options),
            ...(options.class !== undefined && { class: options.class }),
            ...(options.reason !== undefined && { reason: options.reason }),
            ...(options.expiresIn !== undefined && { expiresInSeconds: options.expiresIn }),
          },
        });
        io.stdout.write(`request ${request.id} is ${request.state}\n`);
        if (request.state === 'pending') io.stderr.write('see what became of it with: isthmus requests list --sent\n');
      }),
    );

const withdrawCommand = (io: CliIo): Command =>
  new Command('withdraw')
    .description('take back a request that you made')
    .argument('<id>', 'id of the request, rq_…')
    .action((id: string) =>
      withBroker(io, async (broker) => {
        const request = await broker.api.withdrawRequest({ path: { request: id } });
        io.stdout.write(`request ${request.id} is ${request.state}\n`);
      }),
    );
