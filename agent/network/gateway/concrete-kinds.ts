/** Templates and concrete gateways by kind: ours from caches, those of other transports from the API server. */
import type { Caches, KubeApi } from '#kube/model/types.ts';
import { apiVersionOf, type KubeObject, type ObjectRef, type ResourceType } from '#shared/domain/kube-object.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

const own: readonly ResourceType[] = [
  networkKinds.wgGatewayServers,
  networkKinds.wgGatewayClients,
  networkKinds.wgGatewayServerTemplates,
  networkKinds.wgGatewayClientTemplates,
];

export interface ConcreteKinds {
  /** Fails with `invalid_input` when the kind may not be used or is not installed. */
  typeOf(apiVersion: string, kind: string, signal: AbortSignal): Promise<ResourceType>;
  /** Changes of other transports' objects are not watched: look again. */
  isWatched(type: ResourceType): boolean;
  get(type: ResourceType, ref: ObjectRef, signal: AbortSignal): Promise<KubeObject | undefined>;
}

/** What a template may not make this controller create: everything built in, and our own kinds besides the gateways. */
const isReserved = (group: string): boolean =>
  !group.includes('.') || /(^|\.)(k8s\.io|liqo\.io|isthmus\.dev)$/.test(group);

export function createConcreteKinds(api: KubeApi, caches: Caches): ConcreteKinds {
  const found = new Map<string, ResourceType>();

  async function discover(apiVersion: string, kind: string, signal: AbortSignal): Promise<ResourceType> {
    const [group = '', version = ''] = apiVersion.split('/');
    if (isReserved(group))
      throw new AppError(
        'invalid_input',
        `kind ${apiVersion} ${kind} is no gateway; accepted: WgGatewayServer, WgGatewayClient, or a custom kind of another group`,
      );
    const text = await api.getPath(`/apis/${group}/${version}`, signal).catch((error: unknown) => {
      if (codeOf(error) === 'kube_not_found') return '{}';
      throw error;
    });
    const { resources = [] } = JSON.parse(text) as {
      resources?: { name: string; kind: string; namespaced: boolean }[];
    };
    const one = resources.find((resource) => resource.kind === kind && !resource.name.includes('/'));
    if (one?.namespaced !== true)
      throw new AppError('invalid_input', `no namespaced kind ${apiVersion} ${kind} is installed in this cluster`);
    return { group, version, kind, plural: one.name, namespaced: true };
  }

  return {
    async typeOf(apiVersion, kind, signal) {
      const ours = own.find((type) => type.kind === kind && apiVersionOf(type) === apiVersion);
      const key = `${apiVersion} ${kind}`;
      const type = ours ?? found.get(key) ?? (await discover(apiVersion, kind, signal));
      if (ours === undefined) found.set(key, type);
      return type;
    },
    isWatched: (type) => own.includes(type),
    get: async (type, ref, signal) => (own.includes(type) ? caches.cache(type).get(ref) : api.get(type, ref, signal)),
  };
}
