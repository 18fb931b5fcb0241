/** GatewayServers and GatewayClients: renders each from its template, follows what was rendered, and keeps the Connection of the link. */

import { peerOf, tenantNamespaces } from '#agent/model/peering-selections.ts';
import { linkRefusal } from '#agent/model/policies.ts';
import { placementOf } from '#agent/model/tenant-namespaces.ts';
import { createReportWait } from '#agent/runtime/wait-events.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { deleteOwned, ensureOwned } from '#kube/writes/owned-object.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { writeAnnotations, writeStatus } from '#kube/writes/write-if-changed.ts';
import {
  apiVersionOf,
  type KubeObject,
  keyOf,
  type ResourceType,
  refOf,
  refOfKey,
} from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation, networkLabel, networkName } from '#shared/domain/network-keys.ts';
import { type Outcome, settled, stalled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { ConnectionType } from '#shared/schema/liqo/connection.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { GatewayTemplateSpec } from '#shared/schema/liqo/rendered-gateway.ts';
import type { NetworkDeps } from '../model/deps.ts';
import { createConcreteKinds } from './concrete-kinds.ts';
import { type ConcreteStatus, type Gateway, gatewayStatus, keyTrouble, rivalOf } from './decide.ts';
import { type RenderedGateway, renderGateway } from './templates/rendered-gateway.ts';
import { candidateOf, type Trouble } from './wireguard/endpoint.ts';
import { buildConnection } from './wireguard/objects.ts';

interface Role {
  readonly name: string;
  readonly type: ResourceType<Gateway>;
  readonly opposite: ResourceType<Gateway>;
  readonly concrete: ResourceType;
  readonly templates: ResourceType<KubeObject & { spec: GatewayTemplateSpec }>;
  readonly defaultTemplate: string;
  readonly refField: 'serverRef' | 'clientRef';
  readonly connection: ConnectionType;
  readonly templateRef: (gateway: Gateway) => TemplateRef;
}

interface TemplateRef {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
}

const server: Role = {
  name: 'gateway-server',
  type: networkKinds.gatewayServers as ResourceType<Gateway>,
  opposite: networkKinds.gatewayClients as ResourceType<Gateway>,
  concrete: networkKinds.wgGatewayServers,
  templates: networkKinds.wgGatewayServerTemplates,
  defaultTemplate: networkName.serverTemplate,
  refField: 'serverRef',
  connection: 'Server',
  templateRef: ({ spec }) => ('serverTemplateRef' in spec ? (spec.serverTemplateRef ?? {}) : {}),
};
const client: Role = {
  name: 'gateway-client',
  type: networkKinds.gatewayClients as ResourceType<Gateway>,
  opposite: networkKinds.gatewayServers as ResourceType<Gateway>,
  concrete: networkKinds.wgGatewayClients,
  templates: networkKinds.wgGatewayClientTemplates,
  defaultTemplate: networkName.clientTemplate,
  refField: 'clientRef',
  connection: 'Client',
  templateRef: ({ spec }) => ('clientTemplateRef' in spec ? (spec.clientTemplateRef ?? {}) : {}),
};

export const createGatewayServerController = (deps: NetworkDeps): Controller => createGatewayController(server, deps);
export const createGatewayClientController = (deps: NetworkDeps): Controller => createGatewayController(client, deps);

const unwatchedMs = 10_000;
const retryMs = 60_000;

interface Rendered {
  readonly type?: ResourceType;
  readonly concrete?: RenderedGateway;
  readonly trouble?: Trouble;
}

function createGatewayController(role: Role, deps: NetworkDeps): Controller {
  const { cluster, clock, systemNamespace } = deps;
  const { api, caches, events } = cluster;
  const cache: Cache<Gateway> = caches.cache(role.type);
  const oppositeCache: Cache<Gateway> = caches.cache(role.opposite);
  const concreteCache = caches.cache(role.concrete);
  const templateCache = caches.cache(role.templates);
  const keyCache = caches.cache(networkKinds.publicKeys);
  const connectionCache = caches.cache(networkKinds.connections);
  const namespaces = tenantNamespaces(caches);
  const policies = caches.cache(peeringPolicies);
  const kinds = createConcreteKinds(api, caches);
  const reportWait = createReportWait(events, clock);

  const templateRefOf = (gateway: Gateway) => {
    const ref = role.templateRef(gateway);
    return {
      apiVersion: ref.apiVersion || apiVersionOf(role.templates),
      kind: ref.kind || role.templates.kind,
      name: ref.name || role.defaultTemplate,
      namespace: ref.namespace || systemNamespace,
    };
  };

  async function render(gateway: Gateway, peer: string, signal: AbortSignal): Promise<Rendered> {
    const ref = templateRefOf(gateway);
    const where = `${ref.kind} ${ref.namespace}/${ref.name}`;
    let type: ResourceType | undefined;
    try {
      const templateType = await kinds.typeOf(ref.apiVersion, ref.kind, signal);
      const template = (await kinds.get(templateType, ref, signal)) as { spec: GatewayTemplateSpec } | undefined;
      // What was rendered from it stays: a deleted template is no reason to cut a link.
      if (template === undefined) {
        const concrete = await existing(gateway, role.concrete, signal);
        return {
          type: role.concrete,
          ...(concrete === undefined ? {} : { concrete }),
          trouble: {
            reason: 'TemplateMissing',
            message: `${where} does not exist; create it, or name another template`,
          },
        };
      }
      const { objectKind } = template.spec;
      type = await kinds.typeOf(objectKind.apiVersion, objectKind.kind, signal);
      const wanted = renderGateway({ gateway, owner: ownerOf(role.type, gateway), peer, template: template.spec });
      const actual = await kinds.get(type, refOf(gateway), signal);
      const done = await ensureOwned(api, type, actual, wanted, signal);
      const trouble =
        done === 'foreign'
          ? {
              reason: 'NameTaken',
              message: `${type.kind} ${gateway.metadata.name} exists and has another owner; remove it`,
            }
          : undefined;
      const concrete = done === 'done' ? actual : undefined;
      return {
        type,
        ...(concrete === undefined ? {} : { concrete: concrete as RenderedGateway }),
        ...(trouble === undefined ? {} : { trouble }),
      };
    } catch (error) {
      const code = codeOf(error);
      if (code !== 'invalid_input' && code !== 'kube_invalid') throw error;
      const concrete = type === undefined ? undefined : await existing(gateway, type, signal);
      return {
        ...(type === undefined ? {} : { type }),
        ...(concrete === undefined ? {} : { concrete }),
        trouble: { reason: 'TemplateInvalid', message: `${where}: ${(error as Error).message}` },
      };
    }
  }

  async function existing(
    gateway: Gateway,
    type: ResourceType,
    signal: AbortSignal,
  ): Promise<RenderedGateway | undefined> {
    const found = await kinds.get(type, refOf(gateway), signal);
    return found?.metadata.ownerReferences?.some(({ uid }) => uid === gateway.metadata.uid)
      ? (found as RenderedGateway)
      : undefined;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const gateway = cache.get(refOfKey(key));
    if (gateway === undefined || gateway.metadata.deletionTimestamp !== undefined) return settled;
    const placement = placementOf(gateway, peerOf(gateway), namespaces.list());
    if ('outcome' in placement) {
      const { outcome } = placement;
      const trouble =
        outcome.kind === 'stalled'
          ? outcome
          : { reason: 'Waiting', message: outcome.kind === 'waiting' ? `waiting for ${outcome.on}` : '' };
      await report(gateway, {}, trouble, signal);
      return reportWait(gateway, outcome);
    }
    const { peer } = placement;
    const refusal = linkRefusal(policies.list(), peer, []);
    const ban =
      refusal === undefined
        ? rivalOf(gateway, peer, [...cache.list(), ...oppositeCache.list()])
        : { reason: 'PolicyRefused', message: refusal };
    if (ban !== undefined) {
      await deleteOwned(api, role.concrete, concreteCache.get(refOf(gateway)), gateway, signal);
      await report(gateway, {}, ban, signal);
      return reportWait(gateway, stalled(ban.reason, ban.message));
    }
    const rendered = await render(gateway, peer, signal);
    const noKey = keyTrouble(keyCache.list(), gateway.metadata.namespace, peer);
    if (rendered.concrete !== undefined && noKey === undefined)
      await ensureConnection(gateway, peer, rendered.concrete, signal);
    await writeAnnotations(api, role.type, gateway, reachOf(rendered.concrete), signal);
    await report(gateway, rendered, rendered.trouble, signal, noKey);
    const { trouble, type } = rendered;
    if (trouble !== undefined) return reportWait(gateway, stalled(trouble.reason, trouble.message));
    if (noKey !== undefined) return reportWait(gateway, waiting(noKey.message, retryMs));
    reportWait(gateway, settled);
    return type === undefined || kinds.isWatched(type) ? settled : { kind: 'again', afterMs: unwatchedMs };
  }

  async function report(
    gateway: Gateway,
    { concrete }: Rendered,
    trouble: Trouble | undefined,
    signal: AbortSignal,
    lastTrouble?: Trouble,
  ): Promise<void> {
    const status = gatewayStatus({
      gateway,
      refField: role.refField,
      concrete,
      status: concrete?.status as ConcreteStatus | undefined,
      trouble,
      lastTrouble,
      nowMs: clock.now(),
    });
    await writeStatus(api, role.type as ResourceType<KubeObject & { status?: unknown }>, gateway, status, signal);
  }

  async function ensureConnection(
    gateway: Gateway,
    peer: string,
    concrete: RenderedGateway,
    signal: AbortSignal,
  ): Promise<void> {
    const { name, namespace = '' } = gateway.metadata;
    const type = networkKinds.connections;
    const ref = { namespace, name: networkName.gateway(name) };
    const wanted = buildConnection(
      { name, namespace, peer, owner: ownerOf(role.type, gateway) },
      role.connection,
      concrete,
    );
    const known = connectionCache.get(ref);
    if ((await ensureOwned(api, type, known, wanted, signal)) !== 'done') return;
    if (known !== undefined && known.status?.value === undefined)
      await api.mergePatch(type, ref, { status: { value: 'Connecting' } }, { subresource: 'status' }, signal);
  }

  const gatewaysOf = (matches: (gateway: Gateway) => boolean): string[] => cache.list().filter(matches).map(keyOf);
  const sameNamespace = ({ metadata }: KubeObject): string[] =>
    gatewaysOf((gateway) => gateway.metadata.namespace === metadata.namespace);
  const byLabel = ({ metadata }: KubeObject): string[] => {
    const gateway = metadata.labels?.[networkLabel.gatewayName];
    return gateway === undefined ? [] : [`${metadata.namespace}/${gateway}`];
  };
  return createController(
    {
      name: role.name,
      watches: [
        watch(cache, (gateway) => [keyOf(gateway), ...gatewaysOf((one) => peerOf(one) === peerOf(gateway))]),
        watch(oppositeCache, (gateway) => gatewaysOf((one) => peerOf(one) === peerOf(gateway))),
        watch(concreteCache, (concrete) => [keyOf(concrete)]),
        watch(templateCache, ({ metadata }) =>
          gatewaysOf((gateway) => {
            const ref = templateRefOf(gateway);
            return ref.name === metadata.name && ref.namespace === metadata.namespace;
          }),
        ),
        watch(keyCache, sameNamespace),
        watch(policies, () => gatewaysOf(() => true)),
        watch(connectionCache, byLabel),
        watch(namespaces, (namespace) =>
          gatewaysOf((gateway) => gateway.metadata.namespace === namespace.metadata.name),
        ),
      ],
      reconcile,
    },
    deps,
  );
}

/** Where the peer may reach this side: what the concrete gateway found, else what its endpoint says. */
function reachOf(concrete: RenderedGateway | undefined): Record<string, string | undefined> {
  const { candidates, nodePort } = isthmusNetworkAnnotation;
  const found = concrete?.metadata.annotations;
  return { [candidates]: found?.[candidates] ?? fromEndpoint(concrete), [nodePort]: found?.[nodePort] };
}

function fromEndpoint(concrete: RenderedGateway | undefined): string | undefined {
  const { addresses = [], port } = (concrete?.status?.endpoint ?? {}) as { addresses?: string[]; port?: number };
  return port === undefined || addresses.length === 0
    ? undefined
    : JSON.stringify(addresses.map((address) => candidateOf(address, port)));
}
