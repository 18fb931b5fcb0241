/** The objects of a gateway, from templates that say much or nothing. */
import { describe, expect, test } from 'vitest';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { GatewayDeployment } from '#shared/schema/liqo/rendered-gateway.ts';
import { renderGateway } from '../templates/rendered-gateway.ts';
import {
  buildConnection,
  buildGatewayDeployment,
  buildGatewayService,
  type GatewayIdentity,
  modeOf,
  usualReplicas,
} from './objects.ts';

const owner = {
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'WgGatewayServer',
  name: 'p',
  uid: 'u',
  controller: true,
};
const identity: GatewayIdentity = { name: 'p', namespace: 't', peer: 'milan', owner };
const deployment = (template: GatewayDeployment = {}, mode: 'userspace' | 'kernel' = 'userspace') =>
  buildGatewayDeployment({ identity, template, secretName: 'gw-p', mode, replicas: 2 });

describe('the Deployment of a gateway', () => {
  test('has what every gateway needs, from a template that says nothing', () => {
    const { metadata, spec } = deployment();
    expect(metadata).toMatchObject({ name: 'gw-p', namespace: 't', ownerReferences: [owner] });
    expect(spec).toMatchObject({
      replicas: 2,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: { 'networking.liqo.io/component': 'gateway', 'networking.liqo.io/gateway-name': 'p' } },
    });
    const pod = spec?.template?.spec;
    expect(pod?.automountServiceAccountToken).toBe(false);
    expect(pod?.containers).toEqual([
      {
        name: 'wireguard',
        command: ['wireguard-go', '-f', 'liqo-tunnel'],
        volumeMounts: [{ name: 'isthmus-keys', mountPath: '/etc/wireguard/keys', readOnly: true }],
      },
    ]);
    expect(pod?.volumes).toEqual([{ name: 'isthmus-keys', secret: { secretName: 'gw-p', defaultMode: 0o400 } }]);
  });

  test.each([
    [0, 1],
    [1, 1],
    [2, 2],
    [9, 2],
  ])('has, with %i nodes, %i pods unless its template says so', (nodes, pods) => {
    expect(usualReplicas(nodes)).toBe(pods);
  });

  test('keeps what the template says, except for the label of the active pod', () => {
    const template = {
      metadata: { labels: { a: 'b' } },
      spec: {
        replicas: 3,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: { app: 'gw', 'networking.liqo.io/active': 'true' } },
        template: {
          metadata: { labels: { app: 'gw', 'networking.liqo.io/active': 'true' }, annotations: { x: 'y' } },
          spec: {
            terminationGracePeriodSeconds: 30,
            containers: [
              { name: 'own', command: ['mine'], volumeMounts: [{ name: 'k', mountPath: '/etc/wireguard/keys' }] },
              { name: 'side' },
            ],
            volumes: [{ name: 'k', secret: { secretName: 'other' } }],
          },
        },
      },
    } as GatewayDeployment;
    const { metadata, spec } = deployment(template);
    expect(metadata.labels).toMatchObject({ a: 'b' });
    expect(spec).toMatchObject({ replicas: 3, strategy: { type: 'Recreate' } });
    expect(spec?.selector?.matchLabels).toEqual({
      app: 'gw',
      'networking.liqo.io/component': 'gateway',
      'networking.liqo.io/gateway-name': 'p',
    });
    const pod = spec?.template;
    expect(pod?.metadata?.labels).toMatchObject({ app: 'gw', 'liqo.io/remote-cluster-id': 'milan' });
    expect(pod?.metadata?.labels).not.toHaveProperty('networking.liqo.io/active');
    expect(pod?.metadata?.annotations).toEqual({ x: 'y' });
    expect(pod?.spec).toMatchObject({ terminationGracePeriodSeconds: 30, volumes: [{ name: 'k' }] });
    expect(pod?.spec?.containers?.map((one) => one?.command?.join())).toEqual(['mine', undefined]);
  });

  test('is told apart by how it runs WireGuard, and by a digest of what was applied', () => {
    const [userspace, kernel] = (['userspace', 'kernel'] as const).map((mode) => deployment({}, mode));
    expect(modeOf(userspace as never)).toBe('userspace');
    expect(modeOf(kernel as never)).toBe('kernel');
    expect(modeOf(undefined)).toBeUndefined();
    expect(userspace?.metadata.annotations).not.toEqual(kernel?.metadata.annotations);
    expect(deployment({}, 'userspace')).toEqual(userspace);
  });
});

test('the Service of a gateway selects the active pod of this gateway alone, and ignores the selector of the template', () => {
  const spec = { type: 'NodePort', selector: { app: 'gw', 'networking.liqo.io/active': 'false' } };
  expect(buildGatewayService(identity, { spec }).spec).toMatchObject({
    type: 'NodePort',
    selector: {
      app: 'gw',
      'networking.liqo.io/component': 'gateway',
      'networking.liqo.io/gateway-name': 'p',
      'networking.liqo.io/active': 'true',
    },
  });
});

test('the Connection names the rendered gateway of any kind', () => {
  expect(buildConnection(identity, 'Client', { apiVersion: 'x.example/v1', kind: 'Other' }).spec).toEqual({
    type: 'Client',
    gatewayRef: { apiVersion: 'x.example/v1', kind: 'Other', name: 'p', namespace: 't' },
  });
});

describe('a rendered gateway', () => {
  const gateway: GatewayServer = {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'GatewayServer',
    metadata: {
      name: 'p',
      namespace: 't',
      uid: 'g',
      annotations: {
        'networking.isthmus.dev/endpoint': 'a:1',
        'kubectl.kubernetes.io/last-applied-configuration': '{}',
      },
    },
    spec: {
      endpoint: { ports: [51_841, 51_842], serviceType: 'NodePort' },
      serviceLabels: { tier: 'edge' },
      serviceAnnotations: { pool: 'public' },
      secretRef: { name: 'mine' },
    },
  };
  const render = (template: object) =>
    renderGateway({
      gateway,
      owner,
      peer: 'milan',
      template: { objectKind: { apiVersion: 'x.example/v1', kind: 'Other' }, template: template as never },
    });

  test('has the gateway’s name, its labels and its Secret; Service labels go over those of the template', () => {
    const rendered = render({
      metadata: { name: 'ignored', labels: { id: '{{ .ClusterID }}' } },
      spec: {
        service: {
          metadata: { labels: { tier: 'x', zone: 'z' } },
          spec: { ports: [{ port: '{{ .Spec.Endpoint.Port }}' }] },
        },
        secret: '{{ .SecretName }}',
        mtu: '{{ .Spec.MTU }}',
      },
    });
    expect(rendered).toMatchObject({
      apiVersion: 'x.example/v1',
      kind: 'Other',
      metadata: {
        name: 'p',
        namespace: 't',
        labels: { id: 'milan', 'liqo.io/remote-cluster-id': 'milan' },
        ownerReferences: [owner],
      },
      spec: {
        service: {
          metadata: { labels: { tier: 'edge', zone: 'z' }, annotations: { pool: 'public' } },
          spec: { ports: [{ port: 51_841 }] },
        },
        secret: 'mine',
        mtu: 1340,
        secretRef: { name: 'mine' },
      },
    });
    expect(Object.keys(rendered.metadata.annotations ?? {}).sort()).toEqual([
      'networking.isthmus.dev/applied',
      'networking.isthmus.dev/endpoint',
    ]);
  });

  test('of a template without spec is refused', () =>
    expect(() => render({ metadata: {} })).toThrow('spec.template.spec is undefined, accepted: an object'));
});
