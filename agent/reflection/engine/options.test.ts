import { expect, test } from 'vitest';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { VkOptionsTemplate } from '#shared/schema/liqo/vk-options-template.ts';
import { defaultAnnotationsNotReflected, reflectionOptions } from './options.ts';

const node = (spec: object = {}): VirtualNode =>
  ({
    apiVersion: 'x',
    kind: 'VirtualNode',
    metadata: { name: 'vn1', namespace: 'tenant' },
    spec: { clusterID: 'prov', ...spec },
  }) as VirtualNode;
const template = (spec: object): VkOptionsTemplate => ({ metadata: { name: 't' }, spec }) as VkOptionsTemplate;
const withArgs = (...args: string[]) => ({ template: { spec: { template: { spec: { containers: [{ args }] } } } } });

test('without any template everything is reflected unless it says no, and pods reach their API server', () => {
  const options = reflectionOptions(node(), undefined);
  expect(Object.values(options.kinds).every(({ workers, type }) => workers > 0 && type === 'DenyList')).toBe(true);
  expect(options).toMatchObject({
    apiSupport: true,
    labelsNotReflected: [],
    ingressClass: undefined,
    loadBalancerClass: undefined,
  });
  expect(options.annotationsNotReflected).toEqual([...defaultAnnotationsNotReflected].sort());
});

test('the template counts, the arguments of the VirtualNode count more, and slices follow Services', () => {
  const reflectorsConfig = {
    service: { workers: 5, type: 'AllowList' },
    secret: { workers: 0 },
    configmap: { workers: 2, type: 'CustomLiqo' },
  };
  const from = template({ reflectorsConfig, extraArgs: ['--enable-apiserver-support=false'] });
  const { kinds, apiSupport } = reflectionOptions(
    node(withArgs('--configmap-reflection-type=AllowList', '--secret-reflection-workers=4', '--odd')),
    from,
  );
  expect(kinds.service).toEqual({ workers: 5, type: 'AllowList' });
  expect(kinds.endpointslice).toEqual({ workers: 10, type: 'AllowList' });
  expect(kinds.configmap).toEqual({ workers: 2, type: 'AllowList' });
  expect(kinds.secret).toEqual({ workers: 4, type: 'DenyList' });
  expect(apiSupport).toBe(false);
});

test('where addresses mean nothing to the provider, no slices are reflected', () => {
  const { kinds, addresses } = reflectionOptions(node(withArgs('--disable-ip-reflection')), undefined);
  expect(addresses).toBe(false);
  expect(kinds.endpointslice.workers).toBe(0);
  expect(kinds.service.workers).toBe(10);
});

test('keys of template and patch are joined; of classes the default one is taken, else the first', () => {
  const from = template({ labelsNotReflected: ['a'], annotationsNotReflected: ['x'] });
  const spec = {
    offloadingPatch: { labelsNotReflected: ['b', 'a'], annotationsNotReflected: ['y'] },
    ingressClasses: [{ ingressClassName: 'one' }, { ingressClassName: 'two', default: true }],
    loadBalancerClasses: [{ loadBalancerClassName: 'first' }, { loadBalancerClassName: 'second' }],
  };
  expect(reflectionOptions(node(spec), from)).toMatchObject({
    labelsNotReflected: ['a', 'b'],
    annotationsNotReflected: ['x', 'y'],
    ingressClass: 'two',
    loadBalancerClass: 'first',
  });
});

test('a kind that no PeeringPolicy lets go to the provider is forbidden, which no template or argument changes', () => {
  const from = template({ reflectorsConfig: { secret: { workers: 9 } } });
  const { kinds } = reflectionOptions(node(withArgs('--secret-reflection-workers=4')), from, new Set(['service']));
  expect(kinds.secret.forbidden).toBe(true);
  expect(kinds.endpointslice.forbidden).toBe(true);
  expect(kinds.service.forbidden).toBeUndefined();
});
