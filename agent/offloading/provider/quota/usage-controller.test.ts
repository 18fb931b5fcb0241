import { expect, test } from 'vitest';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { usageOf } from './fits.ts';
import { quotaStatus } from './usage-controller.ts';

const quota = (resources: Record<string, string>) => ({ spec: { user: 'milan', resources } });
const shadow = (pod: object, phase = 'Running'): ShadowPod =>
  ({
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'ShadowPod',
    metadata: { name: 'x', namespace: 'demo' },
    spec: { pod },
    status: { phase },
  }) as unknown as ShadowPod;
const container = (requests: object) => ({ name: 'app', resources: { requests } });

test('a Quota says what is taken and what is free, of every resource, sidecars and overhead included', () => {
  const pods = [
    shadow({
      containers: [container({ cpu: '500m', memory: '256Mi', 'example.dev/gpu': '1' })],
      initContainers: [{ ...container({ cpu: '250m' }), restartPolicy: 'Always' }],
      overhead: { memory: '64Mi' },
    }),
    shadow({ containers: [container({ cpu: '1', memory: '1Gi' })] }, 'Succeeded'),
    shadow({ containers: [container({ cpu: '1' })] }, 'Failed'),
  ];
  expect(quotaStatus(quota({ cpu: '2', memory: '1Gi', pods: '10', 'example.dev/gpu': '1' }), usageOf(pods))).toEqual({
    used: { cpu: '750m', memory: '320Mi', pods: '1', 'example.dev/gpu': '1' },
    free: { cpu: '1250m', memory: '704Mi', pods: '9', 'example.dev/gpu': '0' },
  });
});

test('a Quota that was reduced below what runs has nothing free, and never less than nothing', () => {
  const used = usageOf([shadow({ containers: [container({ cpu: '3' })] })]);
  expect(quotaStatus(quota({ cpu: '2' }), used)).toEqual({ used: { cpu: '3', pods: '1' }, free: { cpu: '0' } });
});
