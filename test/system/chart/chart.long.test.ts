/** A release of the chart on a real cluster of one node: agents that run, and the hook that refuses to take them away too early. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { inOrder } from '#test/harness/in-order.ts';
import { openProductClusters, type ProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { type Ended, run } from '#test/harness/program.ts';
import { buildHelm } from '#test/testbed/build.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'chart-under-test') };
const chart = path.join(repositoryRoot, 'charts', 'isthmus');
const values = path.join(repositoryRoot, '.build', 'chart-values', 'values.json');
const ranges = { podCidr: '10.50.0.0/16', serviceCidr: '10.150.0.0/16' } as const;
vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });
let fixture: ProductClusters;
let helmProgram: string;

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  helmProgram = await buildHelm();
  await removeProductClusters(place);
  fixture = await openProductClusters({ ...place, clusters: [{ name: 'rome', ...ranges }], brokerPort: 7686 });
  const { podCidr, serviceCidr } = ranges;
  mkdirSync(path.dirname(values), { recursive: true });
  writeFileSync(
    values,
    JSON.stringify({
      clusterId: 'rome',
      apiServerUrl: fixture.cluster('rome').apiServerUrl,
      image: fixture.image,
      network: { podCidrs: [podCidr], serviceCidr, externalCidr: '10.70.0.0/16' },
    }),
  );
});
afterAll(async () => {
  await fixture?.close();
  rmSync(path.dirname(values), { recursive: true, force: true });
});

const target = (): string[] => ['--kubeconfig', fixture.cluster('rome').kubeconfigPath];
const helm = (...args: readonly string[]): Promise<Ended> =>
  run(helmProgram, [...args, '--namespace', 'default', ...target()], { timeoutMs: 240_000 });
const kubectl = (...args: readonly string[]): Promise<string> => fixture.cluster('rome').kubectl(...args);
const configurations = async (): Promise<string[]> =>
  (await kubectl('get', 'mutatingwebhookconfigurations,validatingwebhookconfigurations', '-o', 'name'))
    .split('\n')
    .filter((line) => line.endsWith('/isthmus-webhook'))
    .sort();

describe('a release of the chart on real nodes', () => {
  test('runs: agent and node process become ready', async () => {
    const { code, stderr } = await helm('install', 'isthmus', chart, '--values', values, '--wait', '--timeout', '180s');
    expect(code, stderr).toBe(0);
    expect(fixture.ownPids('rome').agent).not.toHaveLength(0);
    expect(fixture.ownPids('rome').node).not.toHaveLength(0);
    expect(await configurations()).toHaveLength(2);
  });

  test('works, as `helm test` finds out', async () => {
    const { code, stderr } = await helm('test', 'isthmus', '--timeout', '120s');
    expect(code, stderr).toBe(0);
  });

  test('is upgraded to an image that no node can get: with --atomic the agent before is not touched', async () => {
    const before = fixture.ownPids('rome').agent;
    const flags = ['--reuse-values', '--set', 'image=isthmus.test/absent:1', '--atomic', '--timeout', '40s'];
    const { code, stderr } = await helm('upgrade', 'isthmus', chart, ...flags);
    expect([code, stderr]).toEqual([1, expect.stringContaining('has been rolled back due to atomic being set')]);
    expect(fixture.ownPids('rome').agent).toEqual(before);
  });

  test('is upgraded after that, and nothing of the failed upgrade is left', async () => {
    const flags = ['--values', values, '--set', 'sharePercent=70', '--wait', '--timeout', '120s'];
    const { code, stderr } = await helm('upgrade', 'isthmus', chart, ...flags);
    expect(code, stderr).toBe(0);
    const share = ['get', 'peeringpolicy', 'default', '-o', 'jsonpath={.spec.asProvider.sharePercent}'];
    expect(await kubectl(...share)).toBe('70');
    const jobs = await kubectl('get', 'jobs,configmaps', '--namespace', 'default', '-o', 'name');
    expect(jobs.split('\n').filter((line) => line.includes('isthmus'))).toEqual([]);
  });

  test('is not uninstalled under its agent, and the log of the hook says what to do', async () => {
    const { code, stderr } = await helm('uninstall', 'isthmus', '--timeout', '120s');
    expect([code, stderr]).toEqual([1, expect.stringContaining('job isthmus-before-delete failed')]);
    const log = await kubectl('logs', '--namespace', 'default', '--selector', 'job-name=isthmus-before-delete');
    expect(log).toContain('Run `isthmus uninstall --kubeconfig FILE` first');
    expect(fixture.ownPids('rome').agent).not.toHaveLength(0);
    expect(await configurations()).toHaveLength(2);
  });

  test('is uninstalled after `isthmus uninstall`: no process, no webhook, no namespace and nothing of the hook is left', async () => {
    await fixture.mustIsthmus('uninstall', ...target());
    const { code, stderr } = await helm('uninstall', 'isthmus', '--timeout', '120s');
    expect(code, stderr).toBe(0);
    expect(fixture.ownPids('rome')).toMatchObject({ agent: [], node: [] });
    expect(await configurations()).toEqual([]);
    const left = await kubectl(
      'get',
      'namespaces,clusterroles,clusterrolebindings,jobs,serviceaccounts',
      '-A',
      '-o',
      'name',
    );
    expect(left.split('\n').filter((line) => /isthmus|liqo/.test(line))).toEqual([]);
  });
});
