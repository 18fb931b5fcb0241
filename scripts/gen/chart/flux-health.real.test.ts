/** The health checks for Flux, evaluated by Flux's own code, and what its kstatus says of our kinds without them. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { phases } from '#shared/domain/peering-phase.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { must } from '#test/harness/program.ts';
import { buildFluxHealth } from '#test/testbed/build.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

interface Check {
  readonly apiVersion: string;
  readonly kind: string;
}

let program: string;
let checks: readonly Check[];
beforeAll(async () => {
  program = await buildFluxHealth();
  const file = path.join(repositoryRoot, 'charts', 'isthmus', 'flux-health.yaml');
  checks = (yaml.parse(await readFile(file, 'utf8')) as { spec: { healthCheckExprs: Check[] } }).spec.healthCheckExprs;
}, 600_000);

const apiVersionOf = (kind: string): string => {
  const found = allKinds.find((one) => one.kind === kind);
  return `${found?.group}/${found?.version}`;
};
const metadata = { name: 'milan', namespace: 'default', generation: 2 };

/** Of objects of one kind, each given without kind and metadata; `by`: the expressions that Flux has. */
async function healthOf(kind: string, objects: readonly object[], by: readonly Check[] = checks): Promise<string[]> {
  const whole = objects.map((one) => ({ apiVersion: apiVersionOf(kind), kind, metadata, ...one }));
  const { stdout } = await must(program, [], { input: JSON.stringify({ checks: by, objects: whole }) });
  return JSON.parse(stdout) as string[];
}

const established = { type: 'NetworkConnectionStatus', status: 'Established' };
const modules = (condition: object, enabled = true) => ({
  networking: { enabled, conditions: [condition] },
  authentication: { enabled: false },
  offloading: { enabled: false },
});
const granted = ['Authentication', 'Resources'].map((type) => ({ type, status: 'Accepted' }));

test('are written for kinds and versions that exist', () => {
  for (const { apiVersion, kind } of checks) expect(apiVersion).toBe(apiVersionOf(kind));
  expect(checks).toHaveLength(5);
});

describe('the health of', () => {
  test.each<[string, object, string]>([
    ['Peering', { status: { phase: 'Ready', observedGeneration: 2 } }, 'Current'],
    ['Peering', { status: { phase: 'Ready', observedGeneration: 1 } }, 'InProgress'],
    ['ForeignCluster', { status: { modules: modules(established) } }, 'Current'],
    ['ForeignCluster', { status: { modules: modules({ ...established, status: 'Pending' }) } }, 'InProgress'],
    ['ForeignCluster', { status: { modules: modules({ ...established, status: 'Error' }) } }, 'InProgress'],
    ['ForeignCluster', { status: { modules: modules({ ...established, status: 'Error' }, false) } }, 'Current'],
    [
      'ForeignCluster',
      { status: { modules: modules(established), conditions: [{ type: 'APIServerStatus', status: 'Error' }] } },
      'InProgress',
    ],
    ['ForeignCluster', { status: {} }, 'InProgress'],
    ['ResourceSlice', { status: {} }, 'InProgress'],
    ['ResourceSlice', { status: { conditions: granted.slice(1) } }, 'InProgress'],
    ['ResourceSlice', { status: { conditions: granted } }, 'Current'],
    ['ResourceSlice', { status: { conditions: [{ type: 'Resources', status: 'Denied' }] } }, 'Failed'],
    ['VirtualNode', { status: { conditions: [{ type: 'Node', status: 'Draining' }] } }, 'InProgress'],
    ['VirtualNode', { status: { conditions: [{ type: 'Node', status: 'Running' }] } }, 'Current'],
    [
      'VirtualNode',
      { spec: { createNode: false }, status: { conditions: [{ type: 'VirtualKubelet', status: 'Running' }] } },
      'Current',
    ],
    ['NamespaceOffloading', { status: { offloadingPhase: 'Ready', observedGeneration: 2 } }, 'Current'],
    ['NamespaceOffloading', { status: { offloadingPhase: 'Ready', observedGeneration: 1 } }, 'InProgress'],
    ['NamespaceOffloading', { status: { offloadingPhase: 'NoClusterSelected' } }, 'InProgress'],
    ['NamespaceOffloading', { status: { offloadingPhase: 'AllFailed' } }, 'Failed'],
  ])('a %s %j is %s', async (kind, object, health) => {
    expect(await healthOf(kind, [object])).toEqual([health]);
  });

  test('an object of any of these kinds is not healthy without a status', async () => {
    for (const { kind } of checks)
      expect(await healthOf(kind, [{}])).toEqual([expect.stringContaining('no such attr')]);
  });

  test('a Peering is known in each phase of the broker', async () => {
    const found = await healthOf(
      'Peering',
      phases.map((phase) => ({ status: { phase } })),
    );
    expect(Object.fromEntries(phases.map((phase, at) => [phase, found[at]]))).toEqual({
      ...Object.fromEntries(phases.map((phase) => [phase, 'InProgress'])),
      Ready: 'Current',
      Failed: 'Failed',
    });
  });
});

test('without them kstatus takes a slice that was denied for ready: nothing in it is called Ready', async () => {
  const denied = { status: { conditions: [{ type: 'Resources', status: 'Denied' }] } };
  expect(await healthOf('ResourceSlice', [denied], [])).toEqual(['Current']);
});
