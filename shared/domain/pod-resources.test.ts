/** Quota arithmetic against cases from the Kubernetes documentation and against a slow oracle. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PodSpec } from './kube-object.ts';
import { podRequests, podUsage, quantityProblem } from './pod-resources.ts';

const nano = 1_000_000_000n;
const box = (name: string, cpu?: string, extra: object = {}) => ({
  name,
  ...(cpu && { resources: { requests: { cpu } } }),
  ...extra,
});
const pod = (spec: object): PodSpec => ({ containers: [], ...spec }) as PodSpec;

describe('the requests of a pod', () => {
  test('init containers run one after another, containers together', () => {
    const spec = pod({ initContainers: [box('a', '3'), box('b', '1')], containers: [box('c', '1'), box('d', '500m')] });
    expect(podRequests(spec)).toEqual({ cpu: 3n * nano });
  });

  test('sidecars run beside later init containers and beside the containers', () => {
    const sidecar = { restartPolicy: 'Always' };
    const spec = pod({
      initContainers: [box('early', '2'), box('proxy', '1', sidecar), box('late', '2')],
      containers: [box('main', '1')],
    });
    expect(podRequests(spec)).toEqual({ cpu: 3n * nano });
  });

  test('overhead comes on top, and pod-level requests count where they are more than the sum', () => {
    const spec = pod({ containers: [box('a', '1')], overhead: { cpu: '250m' }, resources: { requests: { cpu: '2' } } });
    expect(podRequests(spec)).toEqual({ cpu: (nano * 9n) / 4n });
  });

  test('pod-level requests of less than the sum hide nothing: API servers before 1.34 drop them and keep the containers', () => {
    const spec = pod({ containers: [box('a', '64')], resources: { requests: { cpu: '1m' }, limits: { cpu: '64' } } });
    expect(podRequests(spec)).toEqual({ cpu: 64n * nano });
  });

  test('a limit without a request counts, because the API server makes a request of it', () => {
    const spec = pod({
      containers: [{ name: 'a', resources: { limits: { memory: '1Gi', cpu: '2' }, requests: { cpu: '1' } } }],
    });
    expect(podRequests(spec)).toEqual({ memory: 2n ** 30n * nano, cpu: nano });
  });

  test('every pod takes one of pods', () => expect(podUsage(pod({}))).toEqual({ pods: nano }));

  test('negative and malformed amounts are named', () => {
    expect(quantityProblem(pod({ containers: [box('a', '-5')] }))).toEqual({
      field: 'containers[a].resources.requests.cpu',
      value: '-5',
    });
    expect(quantityProblem(pod({ initContainers: [box('a', 'lots')] }))?.value).toBe('lots');
    expect(quantityProblem(pod({ overhead: { cpu: '1' } }))).toBeUndefined();
  });

  test('equals the peak of a simulated start', () => {
    const containers = fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 4 });
    const inits = fc.array(fc.record({ cpu: fc.integer({ min: 0, max: 9 }), sidecar: fc.boolean() }), { maxLength: 5 });
    fc.assert(
      fc.property(inits, containers, (before, main) => {
        const spec = pod({
          initContainers: before.map((c, i) => box(`i${i}`, `${c.cpu}`, c.sidecar ? { restartPolicy: 'Always' } : {})),
          containers: main.map((cpu, i) => box(`c${i}`, `${cpu}`)),
        });
        let peak = 0;
        const running: number[] = [];
        const sum = () => running.reduce((a, b) => a + b, 0);
        for (const { cpu, sidecar } of before) {
          running.push(cpu);
          peak = Math.max(peak, sum());
          if (!sidecar) running.pop();
        }
        running.push(...main);
        peak = Math.max(peak, sum());
        expect(podRequests(spec).cpu ?? 0n).toBe(BigInt(peak) * nano);
      }),
    );
  });
});

test('resources may be called as something that every object inherits', () => {
  const asks = { resources: { requests: { constructor: '1', valueOf: '2' } } };
  const spec = pod({
    containers: [
      { name: 'a', ...asks },
      { name: 'b', ...asks },
    ],
  });
  expect(podRequests(spec)).toEqual({ constructor: 2n * nano, valueOf: 4n * nano });
});
