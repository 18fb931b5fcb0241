/** The health checks for Argo CD, run by Lua 5.1, whose language is that of Argo CD's interpreter. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianPackages, healthCheckPackages } from '#scripts/setup/debian-packages.ts';
import { phases } from '#shared/domain/peering-phase.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const prefix = 'resource.customizations.health.';
let scripts: Readonly<Record<string, string>>;

beforeAll(async () => {
  await ensureDebianPackages(healthCheckPackages, cacheDir(), () => undefined);
  const file = path.join(repositoryRoot, 'charts', 'isthmus', 'argocd-health.yaml');
  scripts = (yaml.parse(await readFile(file, 'utf8')) as { data: Record<string, string> }).data;
}, 300_000);

function lua(value: unknown): string {
  if (value === undefined || value === null) return 'nil';
  if (Array.isArray(value)) return `{${value.map(lua).join(', ')}}`;
  if (typeof value !== 'object') return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, one]) => `[${JSON.stringify(key)}] = ${lua(one)}`)
    .join(', ')}}`;
}

interface Health {
  readonly status: string;
  readonly message: string;
}

async function healthOf(kind: string, object: object): Promise<Health> {
  const found = allKinds.find((one) => one.kind === kind);
  const script = scripts[`${prefix}${found?.group}_${kind}`];
  const driver = `obj = ${lua(object)}\nlocal function health()\n${script}\nend\nlocal h = health()\nio.write(h.status, "\\n", h.message or "")`;
  const { stdout } = await must('lua5.1', ['-e', driver]);
  const [status = '', message = ''] = stdout.split('\n');
  return { status, message };
}

const metadata = { name: 'milan', generation: 2 };
const established = { type: 'NetworkConnectionStatus', status: 'Established' };
const modules = (condition: object, enabled = true) => ({
  networking: { enabled, conditions: [condition] },
  authentication: { enabled: false },
  offloading: { enabled: false },
});
const going = { ...metadata, deletionTimestamp: '2026-11-22T00:00:00Z' };
const granted = ['Authentication', 'Resources'].map((type) => ({ type, status: 'Accepted' }));

test('is written for kinds that exist', () => {
  const names = allKinds.map(({ group, kind }) => `${prefix}${group}_${kind}`);
  expect(names).toEqual(expect.arrayContaining(Object.keys(scripts)));
});

describe('the health of', () => {
  test.each<[string, object, string, RegExp]>([
    ['Peering', { metadata }, 'Progressing', /has not answered/],
    ['Peering', { metadata, status: { phase: 'Ready', observedGeneration: 2 } }, 'Healthy', /Ready/],
    ['Peering', { metadata, status: { phase: 'Ready', observedGeneration: 1 } }, 'Progressing', /last change/],
    ['Peering', { metadata: going, status: { phase: 'Ready' } }, 'Progressing', /being ended/],
    [
      'Peering',
      { metadata, status: { phase: 'Failed', conditions: [{ type: 'Ready', status: 'False', message: 'refused' }] } },
      'Degraded',
      /^refused$/,
    ],
    ['ForeignCluster', { metadata }, 'Progressing', /nothing is known/],
    [
      'ForeignCluster',
      { metadata, status: { role: 'Provider', modules: modules(established) } },
      'Healthy',
      /Provider/,
    ],
    [
      'ForeignCluster',
      { metadata, status: { modules: modules({ ...established, status: 'Error', message: 'no route' }) } },
      'Degraded',
      /NetworkConnectionStatus is Error: no route/,
    ],
    [
      'ForeignCluster',
      { metadata, status: { modules: modules({ ...established, status: 'Pending' }) } },
      'Progressing',
      /Pending/,
    ],
    [
      'ForeignCluster',
      { metadata, status: { modules: modules({ ...established, status: 'Error' }, false) } },
      'Healthy',
      /role Unknown/,
    ],
    ['ResourceSlice', { metadata }, 'Progressing', /not answered/],
    ['ResourceSlice', { metadata, status: { conditions: granted.slice(1) } }, 'Progressing', /not answered/],
    ['ResourceSlice', { metadata, status: { conditions: granted } }, 'Healthy', /granted/],
    [
      'ResourceSlice',
      { metadata, status: { conditions: [{ type: 'Resources', status: 'Denied', message: 'too much' }] } },
      'Degraded',
      /Resources was denied: too much/,
    ],
    ['VirtualNode', { metadata }, 'Progressing', /not there yet/],
    [
      'VirtualNode',
      { metadata, status: { conditions: [{ type: 'Node', status: 'Draining' }] } },
      'Progressing',
      /Drain/,
    ],
    ['VirtualNode', { metadata, status: { conditions: [{ type: 'Node', status: 'Running' }] } }, 'Healthy', /runs/],
    [
      'VirtualNode',
      {
        metadata,
        spec: { createNode: false },
        status: { conditions: [{ type: 'VirtualKubelet', status: 'Running' }] },
      },
      'Healthy',
      /no node/,
    ],
    ['NamespaceOffloading', { metadata }, 'Progressing', /not seen it/],
    ['NamespaceOffloading', { metadata, status: { offloadingPhase: 'Ready' } }, 'Healthy', /offloaded/],
    ['NamespaceOffloading', { metadata, status: { offloadingPhase: 'NoClusterSelected' } }, 'Degraded', /no provider/],
    ['NamespaceOffloading', { metadata, status: { offloadingPhase: 'AllFailed' } }, 'Degraded', /AllFailed/],
    ['NamespaceOffloading', { metadata: going, status: { offloadingPhase: 'Ready' } }, 'Progressing', /taken back/],
  ])('a %s %j is %s', async (kind, object, status, message) => {
    expect(await healthOf(kind, object)).toEqual({ status, message: expect.stringMatching(message) });
  });

  test('a Peering is known in each phase of the broker', async () => {
    const found = await Promise.all(
      phases.map(async (phase) => [phase, (await healthOf('Peering', { metadata, status: { phase } })).status]),
    );
    expect(Object.fromEntries(found)).toEqual({
      Proposed: 'Progressing',
      Connecting: 'Progressing',
      Authenticating: 'Progressing',
      Negotiating: 'Progressing',
      Ready: 'Healthy',
      Degraded: 'Degraded',
      Unpeering: 'Progressing',
      Gone: 'Degraded',
      Failed: 'Degraded',
    });
  });
});
