/** What a template may say, and what it means. */
import { expect, test } from 'vitest';
import { optionsTemplateRef, withOptions } from '#agent/model/vk-options.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import type { VkOptionsTemplate, VkOptionsTemplateSpec } from '#shared/schema/liqo/vk-options-template.ts';
import { validateOptions } from './options-template.ts';

const template = (spec: Partial<VkOptionsTemplateSpec> = {}): VkOptionsTemplate => ({
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'VkOptionsTemplate',
  metadata: { namespace: 'liqo', name: 'virtual-kubelet-default' },
  spec: { createNode: true, disableNetworkCheck: false, containerImage: 'vk', metricsEnabled: true, ...spec },
});
const virtualNode = (spec: Partial<VirtualNode['spec']> = {}): VirtualNode => ({
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'VirtualNode',
  metadata: { namespace: 'liqo-tenant-prov', name: 'vn1' },
  spec: { clusterID: 'prov', ...spec },
});

test.each<{ spec: Partial<VkOptionsTemplateSpec>; says: RegExp | undefined }>([
  { spec: {}, says: undefined },
  { spec: { extraArgs: ['--enable-apiserver-support=true', '--disable-ip-reflection'] }, says: undefined },
  { spec: { reflectorsConfig: { pod: { workers: 10, type: 'CustomLiqo' }, event: { workers: 0 } } }, says: undefined },
  { spec: { extraArgs: ['--home-kubeconfig=/x'] }, says: /extraArgs contains "--home-kubeconfig=\/x"/ },
  { spec: { reflectorsConfig: { job: { workers: 1 } } }, says: /reflectorsConfig.job is not reflected/ },
  { spec: { reflectorsConfig: { pod: { workers: 1, type: 'AllowList' } } }, says: /pod.type is AllowList/ },
  { spec: { reflectorsConfig: { endpointslice: { workers: 1, type: 'AllowList' } } }, says: /service.type/ },
])('a template with $spec is refused: $says', ({ spec, says }) => {
  const verdict = validateOptions(template(spec));
  if (says === undefined) expect(verdict).toEqual({ allowed: true });
  else expect(verdict).toMatchObject({ allowed: false, message: expect.stringMatching(says) });
});

test('what only shapes a Deployment of Liqo passes with a warning', () => {
  expect(
    validateOptions(
      template({ replicas: 2, pullPolicy: 'Always', metricsEnabled: false, extraArgs: ['--certificate-type=aws'] }),
    ),
  ).toEqual({
    allowed: true,
    warnings: [
      expect.stringMatching(/spec.replicas has no effect/),
      expect.stringMatching(/spec.pullPolicy has no effect/),
      expect.stringMatching(/spec.metricsEnabled is false, which has no effect/),
      expect.stringMatching(/--certificate-type=aws has no effect/),
    ],
  });
});

test('a VirtualNode takes from its template what it does not say itself', () => {
  const options = template({
    createNode: false,
    nodeExtraLabels: { zone: 'a', tier: 'x' },
    labelsNotReflected: ['b'],
    annotationsNotReflected: ['n'],
  });
  const own = { labels: { zone: 'z' }, offloadingPatch: { labelsNotReflected: ['a'], runtimeClassName: 'gvisor' } };
  expect(withOptions(virtualNode(own), options).spec).toMatchObject({
    createNode: false,
    disableNetworkCheck: false,
    labels: { zone: 'z', tier: 'x' },
    offloadingPatch: { labelsNotReflected: ['a', 'b'], annotationsNotReflected: ['n'], runtimeClassName: 'gvisor' },
  });
  expect(withOptions(virtualNode({ createNode: true }), options).spec.createNode).toBe(true);
  const plain = virtualNode(own);
  expect(withOptions(plain, undefined)).toBe(plain);
});

test('the template is the one that is named, in the namespace of the VirtualNode unless that is named too', () => {
  expect(optionsTemplateRef(virtualNode(), 'liqo')).toEqual({ namespace: 'liqo', name: 'virtual-kubelet-default' });
  const named = (ref: object) => optionsTemplateRef(virtualNode({ vkOptionsTemplateRef: ref }), 'liqo');
  expect(named({ name: 'mine' })).toEqual({ namespace: 'liqo-tenant-prov', name: 'mine' });
  expect(named({ name: 'mine', namespace: 'there' })).toEqual({ namespace: 'there', name: 'mine' });
});
