import { expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import { shadowPod } from './shadow-pod-object.ts';

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } });
const file = (path: string, fieldPath: string) => ({ path, fieldRef: { apiVersion: 'v1', fieldPath } });
const env = [field('NS', 'metadata.namespace'), field('ID', 'metadata.uid'), field('NAME', 'metadata.name')];

function forge(annotations: Record<string, string>) {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'demo', uid: 'u-1', annotations },
    spec: {
      containers: [{ name: 'app', env }, { name: 'plain' }],
      initContainers: [{ name: 'init', env }],
      volumes: [
        { name: 'info', downwardAPI: { items: [file('ns', 'metadata.namespace'), file('name', 'metadata.name')] } },
        { name: 'access', projected: { sources: [{ downwardAPI: { items: [file('id', 'metadata.uid')] } }] } },
      ],
    },
  } as unknown as Pod;
  return shadowPod({ pod, remoteNamespace: 'demo-cons', consumer: 'cons', provider: 'prov', nodeName: 'vn1' });
}

test('the downward API tells a pod the namespace and the UID that it has in its own cluster', () => {
  const { metadata, spec } = forge({});
  const told = [{ name: 'NS', value: 'demo' }, { name: 'ID', value: 'u-1' }, env[2]];
  expect(spec.pod.containers).toEqual([{ name: 'app', env: told }, { name: 'plain' }]);
  expect(spec.pod.initContainers).toEqual([{ name: 'init', env: told }]);
  expect(metadata.annotations).toMatchObject({
    'isthmus.dev/local-namespace': 'demo',
    'isthmus.dev/local-pod-uid': 'u-1',
  });
  expect(spec.pod.volumes).toEqual([
    {
      name: 'info',
      downwardAPI: {
        items: [file('ns', "metadata.annotations['isthmus.dev/local-namespace']"), file('name', 'metadata.name')],
      },
    },
    {
      name: 'access',
      projected: {
        sources: [{ downwardAPI: { items: [file('id', "metadata.annotations['isthmus.dev/local-pod-uid']")] } }],
      },
    },
  ]);
});

test("a pod that uses the provider's API server is told the namespace and the UID that it has there", () => {
  const { spec } = forge({ 'liqo.io/api-server-support': 'remote' });
  expect(spec.pod.containers[0]?.env).toEqual(env);
  expect(spec.pod.volumes?.[0]).toMatchObject({ downwardAPI: { items: [file('ns', 'metadata.namespace'), {}] } });
});
