/** What an installed cluster has to have before liqoctl 1.2.0 can do anything with it (docs/design/control-plane.md#what-does-liqoctl-need); the rest of that list shows in what commands do. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { expect } from 'vitest';
import { clusterRoles, deployments, namespaces, roles, secrets } from '#shared/domain/core-kinds.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { argument, managerLabels } from './info.ts';
import { ranges } from './network.ts';
import { clusterIdOf, type Target, theOne } from './requests.ts';

export interface Needed {
  readonly what: string;
  /** Commands that fail without it. */
  readonly by: string;
  check(target: Target): Promise<void>;
}

/** Kind and plural of what liqoctl reads or writes; those with a status have it as a subresource. */
const kinds: Readonly<Record<string, readonly (readonly [kind: string, plural: string, hasStatus: boolean])[]>> = {
  'core.liqo.io/v1beta1': [['ForeignCluster', 'foreignclusters', true]],
  'authentication.liqo.io/v1beta1': [
    ['Tenant', 'tenants', true],
    ['Identity', 'identities', true],
    ['ResourceSlice', 'resourceslices', true],
  ],
  'networking.liqo.io/v1beta1': [
    ['Configuration', 'configurations', true],
    ['Connection', 'connections', true],
    ['GatewayServer', 'gatewayservers', true],
    ['GatewayClient', 'gatewayclients', true],
    ['PublicKey', 'publickeies', false],
    ['WgGatewayServerTemplate', 'wggatewayservertemplates', false],
    ['WgGatewayClientTemplate', 'wggatewayclienttemplates', false],
  ],
  'offloading.liqo.io/v1beta1': [
    ['VirtualNode', 'virtualnodes', true],
    ['NamespaceOffloading', 'namespaceoffloadings', true],
  ],
  'ipam.liqo.io/v1alpha1': [
    ['Network', 'networks', true],
    ['IP', 'ips', true],
  ],
};

interface Discovered {
  readonly resources: readonly { readonly name: string; readonly kind: string }[];
}

const peeringUser = 'app.kubernetes.io/component=peering-user';

interface ServiceTemplate {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly service: { readonly spec: Record<string, unknown> & { readonly ports: readonly object[] } };
      };
    };
  };
}

export const checklist: readonly Needed[] = [
  {
    what: 'every kind under its plural, with its status',
    by: 'all',
    async check({ api }) {
      for (const [groupVersion, wanted] of Object.entries(kinds)) {
        const { resources } = JSON.parse(await api.getPath(`/apis/${groupVersion}`)) as Discovered;
        for (const [kind, plural, hasStatus] of wanted) {
          expect(resources.find(({ name }) => name === plural)?.kind).toBe(kind);
          if (hasStatus) expect(resources.some(({ name }) => name === `${plural}/status`)).toBe(true);
        }
      }
    },
  },
  {
    what: 'the namespace, and one ConfigMap with the cluster ID',
    by: 'all',
    async check(target) {
      expect(await target.api.get(namespaces, { name: target.liqoNamespace })).toBeDefined();
      expect(await clusterIdOf(target)).toMatch(/^[a-z]+$/);
    },
  },
  {
    what: 'Networks by type, each with what was granted',
    by: 'network, peer, info',
    async check(target) {
      const { pod, external } = await ranges(target);
      expect([pod.length, external.length]).toEqual([1, 1]);
    },
  },
  {
    what: 'templates of both gateways, whose Service takes a node port and an address',
    by: 'network, peer',
    async check({ api, liqoNamespace: namespace }) {
      const client = { namespace, name: 'wireguard-client' };
      expect(await api.get(networkKinds.wgGatewayClientTemplates, client)).toBeDefined();
      const server = { namespace, name: 'wireguard-server' };
      const found = (await api.get(networkKinds.wgGatewayServerTemplates, server)) as ServiceTemplate | undefined;
      const service = found?.spec.template.spec.service.spec;
      expect(Object.keys(service ?? {})).toContain('?loadBalancerIP');
      expect(Object.keys(service?.ports[0] ?? {})).toContain('?nodePort');
    },
  },
  {
    what: 'the keys of the cluster, PKCS#8 and PKIX in PEM',
    by: 'authenticate, generate tenant',
    async check({ api, liqoNamespace: namespace }) {
      const { data = {} } = (await api.get(secrets, { namespace, name: 'authentication-keys' })) ?? {};
      const [privateKey, publicKey] = [data.privateKey ?? '', data.publicKey ?? ''].map((text) =>
        Buffer.from(text, 'base64').toString(),
      );
      const derived = createPublicKey(createPrivateKey(privateKey ?? '')).export({ type: 'spki', format: 'pem' });
      expect(publicKey?.trim()).toBe(derived.toString().trim());
    },
  },
  {
    what: 'the Deployment by its labels, with container, image tag and arguments',
    by: 'info, version, generate peering-user',
    async check({ api, liqoNamespace }) {
      const manager = await theOne(api, deployments, liqoNamespace, managerLabels);
      const container = manager?.spec?.template.spec?.containers.find(({ name }) => name === 'controller-manager');
      expect(container?.image).toMatch(/:[^:/]+$/);
      expect(argument(container?.args ?? [], 'api-server-address-override')).toMatch(/^https:\/\//);
      expect(argument(container?.args ?? [], 'tls-compatibility-mode')).toBe('false');
    },
  },
  {
    what: 'one Role and one ClusterRole of peering users',
    by: 'generate peering-user',
    async check({ api, liqoNamespace }) {
      // Looked for in all namespaces: there must be no second one.
      expect((await theOne(api, roles, undefined, peeringUser))?.metadata.namespace).toBe(liqoNamespace);
      expect(await theOne(api, clusterRoles, undefined, peeringUser)).toBeDefined();
    },
  },
  {
    what: 'Tenants listed by name in all namespaces',
    by: 'cordon, uncordon, drain, activate',
    async check({ api }) {
      expect(await api.list(tenants, { fieldSelector: 'metadata.name=nobody' })).toEqual([]);
    },
  },
];
