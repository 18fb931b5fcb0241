/** WgGatewayServers and WgGatewayClients: keys, pods and Service of a gateway, where it can be reached, and which pod carries the traffic. */
import {
  gatewayBindings,
  gatewayDeployments,
  gatewayHosts,
  gatewayPods,
  gatewayServices,
} from '#agent/model/gateway-selections.ts';
import { peerOf, peerSecrets } from '#agent/model/peering-selections.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import type { Condition } from '#kube/writes/conditions.ts';
import { deleteOwned, type Ensured, ensureOwned } from '#kube/writes/owned-object.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { writeAnnotations, writeStatus } from '#kube/writes/write-if-changed.ts';
import { deployments, roleBindings, services } from '#shared/domain/core-kinds.ts';
import { sameJson } from '#shared/domain/json-equality.ts';
import { type KubeObject, keyOf, type ResourceType, refOfKey } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation, networkLabel, networkName } from '#shared/domain/network-keys.ts';
import { type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { WgGatewayClient } from '#shared/schema/liqo/wg-gateway-client.ts';
import type { WgGatewayServer } from '#shared/schema/liqo/wg-gateway-server.ts';
import type { NetworkDeps } from '../../model/deps.ts';
import { activePod, isPodOf } from './active-pod.ts';
import { candidatesOf, statusOf, wireGuardMode } from './decide.ts';
import { discoverEndpoint, type Endpoint, nodePortOf, type Trouble } from './endpoint.ts';
import { createKeySecrets } from './key-secrets.ts';
import {
  buildGatewayDeployment,
  buildGatewayService,
  buildNodeAgentBinding,
  clientServiceTemplate,
  type GatewayIdentity,
  longestGatewayName,
  modeOf,
  usualReplicas,
} from './objects.ts';

type WgGateway = WgGatewayServer | WgGatewayClient;

/** Named Secrets need no label and so no event comes for them. */
const secretRetryMs = 10_000;
const retryMs = 60_000;

export const createWgGatewayServerController = (deps: NetworkDeps): Controller =>
  createWgGatewayController('wg-gateway-server', networkKinds.wgGatewayServers as ResourceType<WgGateway>, deps);
export const createWgGatewayClientController = (deps: NetworkDeps): Controller =>
  createWgGatewayController('wg-gateway-client', networkKinds.wgGatewayClients as ResourceType<WgGateway>, deps);

function createWgGatewayController(name: string, type: ResourceType<WgGateway>, deps: NetworkDeps): Controller {
  const { cluster, clock, systemNamespace } = deps;
  const { api, caches } = cluster;
  const cache: Cache<WgGateway> = caches.cache(type);
  const secretCache = peerSecrets(caches);
  const deploymentCache = gatewayDeployments(caches);
  const serviceCache = gatewayServices(caches);
  const bindingCache = gatewayBindings(caches);
  const podCache = gatewayPods(caches);
  const hosts = gatewayHosts(caches);
  const internalNodes = caches.cache(networkKinds.internalNodes);
  const keySecrets = createKeySecrets(api, secretCache);

  async function ensureDeployment(
    wg: WgGateway,
    identity: GatewayIdentity,
    secretName: string,
    signal: AbortSignal,
  ): Promise<Ensured> {
    const ref = { namespace: identity.namespace, name: networkName.gateway(identity.name) };
    const actual = deploymentCache.get(ref);
    const mode = wireGuardMode(hosts.list(), internalNodes.list(), modeOf(actual));
    const replicas = usualReplicas(hosts.list().length);
    const wanted = buildGatewayDeployment({ identity, template: wg.spec.deployment, secretName, mode, replicas });
    // A selector cannot be changed.
    if (actual !== undefined && !sameJson(actual.spec?.selector, wanted.spec?.selector)) {
      await deleteOwned(api, deployments, actual, wg, signal);
      return 'replaced';
    }
    return ensureOwned(api, deployments, actual, wanted, signal);
  }

  const serviceOf = ({ namespace, name: gateway }: GatewayIdentity) =>
    serviceCache.get({ namespace, name: networkName.gateway(gateway) });

  /** Undefined: this gateway wants none. */
  function wantedService(wg: WgGateway, identity: GatewayIdentity) {
    if ('service' in wg.spec) return buildGatewayService(identity, wg.spec.service);
    const listen = wg.metadata.annotations?.[isthmusNetworkAnnotation.listen];
    return listen === undefined ? undefined : buildGatewayService(identity, clientServiceTemplate(listen));
  }

  async function ensureService(wg: WgGateway, identity: GatewayIdentity, signal: AbortSignal): Promise<Ensured> {
    const actual = serviceOf(identity);
    const wanted = wantedService(wg, identity);
    if (wanted !== undefined) return ensureOwned(api, services, actual, wanted, signal);
    await deleteOwned(api, services, actual, wg, signal);
    return 'done';
  }

  function endpointOf(
    wg: WgGateway,
    identity: GatewayIdentity,
    activeNode: string | undefined,
  ): Endpoint | Trouble | undefined {
    const literal = wg.metadata.annotations?.[isthmusNetworkAnnotation.endpoint];
    if (literal === undefined && wantedService(wg, identity) === undefined) return undefined;
    return discoverEndpoint({ service: serviceOf(identity), nodes: hosts.list(), activeNode, literal });
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const wg = cache.get(refOfKey(key));
    if (wg === undefined || wg.metadata.deletionTimestamp !== undefined) return settled;
    const peer = peerOf(wg);
    const { name: gateway, namespace = '' } = wg.metadata;
    if (peer === undefined || gateway.length > longestGatewayName) {
      const trouble =
        peer === undefined
          ? { reason: 'MissingClusterID', message: 'it has no label liqo.io/remote-cluster-id' }
          : {
              reason: 'NameTooLong',
              message: `its name has ${gateway.length} characters, accepted: at most ${longestGatewayName}`,
            };
      return report(wg, { trouble }, signal);
    }
    const identity: GatewayIdentity = { name: gateway, namespace, peer, owner: ownerOf(type, wg) };
    const secret = await keySecrets.ensure(identity, wg.spec.secretRef?.name, signal);
    const child = { namespace, name: networkName.gateway(gateway) };
    const has = deploymentCache.get(child) !== undefined;
    // A pod that waits for a missing Secret is found again by the kubelet only minutes later.
    const [deployed, exposed] = await Promise.all([
      secret.name === undefined || (secret.trouble !== undefined && !has)
        ? 'done'
        : ensureDeployment(wg, identity, secret.name, signal),
      ensureService(wg, identity, signal),
      ensureOwned(api, roleBindings, bindingCache.get(child), buildNodeAgentBinding(identity, systemNamespace), signal),
    ]);
    const foreign = deployed === 'foreign' ? 'Deployment' : exposed === 'foreign' ? 'Service' : undefined;
    const trouble =
      foreign === undefined
        ? undefined
        : {
            reason: 'NameTaken',
            message: `${foreign} ${networkName.gateway(gateway)} exists and has another owner; remove it`,
          };
    const active = activePod(podCache.list().filter((pod) => isPodOf(pod, namespace, gateway)));
    const endpoint = endpointOf(wg, identity, active?.spec?.nodeName);
    const candidates = candidatesOf(endpoint);
    const reach = {
      [isthmusNetworkAnnotation.candidates]: candidates.length === 0 ? undefined : JSON.stringify(candidates),
      [isthmusNetworkAnnotation.nodePort]: nodePortOf(serviceOf(identity))?.toString(),
    };
    await writeAnnotations(api, type, wg, reach, signal);
    const inUse =
      secret.trouble === undefined && secret.name !== undefined ? { name: secret.name, namespace } : undefined;
    const outcome = await report(
      wg,
      { secret: inUse, secretTrouble: secret.trouble, endpoint, activePod: active, trouble },
      signal,
    );
    return secret.trouble === undefined ? outcome : waiting(secret.trouble.message, secretRetryMs);
  }

  async function report(
    wg: WgGateway,
    found: Partial<Omit<Parameters<typeof statusOf>[0], 'generation' | 'conditions' | 'nowMs'>>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const status = statusOf({
      generation: wg.metadata.generation,
      conditions: wg.status?.conditions as readonly Condition[] | undefined,
      secret: undefined,
      secretTrouble: undefined,
      endpoint: undefined,
      activePod: undefined,
      trouble: undefined,
      ...found,
      nowMs: clock.now(),
    });
    await writeStatus(api, type, wg, status, signal);
    return found.trouble === undefined ? settled : waiting(found.trouble.message, retryMs);
  }

  const byName = ({ metadata }: KubeObject): string[] => {
    const gateway = metadata.labels?.[networkLabel.gatewayName];
    return gateway === undefined ? [] : [`${metadata.namespace}/${gateway}`];
  };
  const all = (): string[] => cache.list().map(keyOf);
  return createController(
    {
      name,
      watches: [
        watch(cache, (wg) => [keyOf(wg)]),
        watch(deploymentCache, byName),
        watch(serviceCache, byName),
        watch(podCache, byName),
        watch(bindingCache, byName),
        watch(secretCache, ({ metadata }) =>
          cache
            .list()
            .filter((wg) => wg.metadata.namespace === metadata.namespace)
            .map(keyOf),
        ),
        watch(hosts, all),
        watch(internalNodes, all),
      ],
      reconcile,
    },
    deps,
  );
}
