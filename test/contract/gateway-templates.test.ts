/** The installed templates, rendered by the controllers' own renderer, are objects that their kinds take. */
import { expect, test } from 'vitest';
import { renderTree, type Tree } from '#agent/network/gateway/templates/render-tree.ts';
import { gatewayTemplates } from '#cli/install/gateway-templates.ts';
import type { Deployment, Service } from '#shared/domain/core-kinds.ts';
import { WgGatewayClientSpec } from '#shared/schema/liqo/wg-gateway-client.ts';
import { WgGatewayServerSpec } from '#shared/schema/liqo/wg-gateway-server.ts';

const [server, client] = gatewayTemplates({ image: 'example.com/agent:1', replicas: 2 });
const data = {
  Name: 'milan',
  Namespace: 'liqo-tenant-milan',
  GatewayUID: 'u',
  ClusterID: '1234',
  SecretName: 'gw-milan',
};
const render = (of: typeof server, Spec: object): unknown =>
  (renderTree(of?.spec.template as Tree, { ...data, Spec }) as { spec: unknown }).spec;

test('the server template gives pods, and a Service with the ports that the gateway asks for', () => {
  const endpoint = { port: 51_841, serviceType: 'NodePort', nodePort: 30_841 };
  const { service, deployment } = WgGatewayServerSpec.parse(render(server, { mtu: 1340, endpoint }));
  const { spec } = service as Service;
  expect(spec).toEqual({
    type: 'NodePort',
    selector: {
      'networking.liqo.io/component': 'gateway',
      'networking.liqo.io/gateway-name': 'milan',
      'networking.liqo.io/active': 'true',
    },
    ports: [{ name: 'wireguard', port: 51_841, protocol: 'UDP', targetPort: 51_841, nodePort: 30_841 }],
  });
  const pod = (deployment as Deployment).spec?.template;
  expect(pod?.metadata?.labels).toMatchObject({ 'liqo.io/remote-cluster-id': '1234' });
  expect(pod?.spec?.volumes?.[0]).toEqual({ name: 'keys', secret: { secretName: 'gw-milan', defaultMode: 0o400 } });
});

test('leaves out what the gateway does not ask for', () => {
  const { service } = WgGatewayServerSpec.parse(
    render(server, { endpoint: { port: 51_840, serviceType: 'LoadBalancer' } }),
  );
  expect((service as Service).spec?.ports?.[0]).not.toHaveProperty('nodePort');
  expect((service as Service).spec).not.toHaveProperty('loadBalancerIP');
});

test('the client template gives the same pods and no Service', () => {
  const requested = { endpoint: { port: 51_840, serviceType: 'ClusterIP' } };
  const { deployment } = WgGatewayServerSpec.parse(render(server, requested));
  const rendered = render(client, {});
  expect(WgGatewayClientSpec.parse(rendered).deployment).toEqual(deployment);
  expect(rendered).not.toHaveProperty('service');
});
