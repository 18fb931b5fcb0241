/** What the real helm makes of the chart, against what `isthmus install` applies. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as yaml from 'yaml';
import { agentManifests, type InstallOptions } from '#cli/install/manifests.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { countOf } from '#test/harness/cases.ts';
import { type Ended, must, run } from '#test/harness/program.ts';
import { buildHelm } from '#test/testbed/build.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';

const chart = path.join(repositoryRoot, 'charts', 'isthmus');
const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-chart-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
let helm: string;
beforeAll(async () => {
  helm = await buildHelm();
}, 900_000);

const file = path.join(scratch, 'values.json');
function template(values: unknown, ...more: readonly string[]): Promise<Ended> {
  writeFileSync(file, JSON.stringify(values));
  return run(helm, ['template', 'isthmus', chart, '--kube-version', '1.30.0', '--values', file, ...more]);
}

async function rendered(values: unknown): Promise<KubeObject[]> {
  const { code, stdout, stderr } = await template(values, '--include-crds', '--no-hooks');
  expect(code, stderr).toBe(0);
  return yaml.parseAllDocuments(stdout).flatMap((document) => (document.toJSON() as KubeObject | null) ?? []);
}

const byName = (objects: readonly KubeObject[]): Record<string, KubeObject> => {
  const named = objects.map((one): [string, KubeObject] => [
    `${one.kind} ${one.metadata.namespace ?? ''}/${one.metadata.name}`,
    one,
  ]);
  expect(new Set(named.map(([name]) => name)).size).toBe(named.length);
  return Object.fromEntries(named);
};

const required = { clusterId: 'rome', apiServerUrl: 'https://192.0.2.1:6443' };
const ranges = { podCidrs: ['10.200.0.0/16'], serviceCidr: '10.96.0.0/12', externalCidr: '10.70.0.0/16' };

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const cidr = fc
  .tuple(fc.nat(255), fc.nat(255), fc.integer({ min: 8, max: 30 }))
  .map(([a, b, length]) => `10.${a}.${b}.0/${length}`);
const cidrs = (minLength: number) => fc.uniqueArray(cidr, { minLength, maxLength: 3 });
const count = fc.integer({ min: 1, max: 9 });
const port = fc.integer({ min: 1, max: 65_535 });
const key = fc.stringMatching(/^[a-z][a-z0-9./-]{0,20}$/);
const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,10}[a-z0-9]$/);
const texts = fc.dictionary(key, fc.string({ unit: 'grapheme' }), { maxKeys: 3 });
const values = fc.record({
  clusterId: name,
  apiServerUrl: fc.webUrl({ validSchemes: ['https'] }),
  image: fc.stringMatching(/^[a-z.]{1,9}\/[a-z]{1,9}:[0-9.]{1,5}$/),
  replicas: count,
  labels: fc.dictionary(key, fc.stringMatching(/^[!-+\-.-<>-~]{0,12}$/), { maxKeys: 4 }),
  sharePercent: fc.integer({ min: 0, max: 10_000 }),
  credentials: maybe(fc.constantFrom('auto' as const, 'certificate' as const, 'token' as const)),
  webhookCallers: cidrs(0),
  metrics: fc.constantFrom(false as const, 'authenticated' as const, 'open' as const),
  network: fc.record({
    enabled: fc.boolean(),
    podCidrs: cidrs(1),
    serviceCidr: cidr,
    externalCidr: cidr,
    internalCidr: cidr,
    reservedSubnets: cidrs(0),
    gatewayReplicas: maybe(count),
    fullMasquerade: maybe(fc.boolean()),
  }),
  storage: fc.record({
    enabled: fc.boolean(),
    className: name,
    capacityClassName: name,
    default: fc.boolean(),
    localClass: maybe(name),
  }),
  platform: fc.record({
    webhookPort: port,
    virtualNodeLabels: texts,
    gatewayAnnotations: texts,
    gatewayHealthPort: maybe(port),
    securityContextConstraints: fc.boolean(),
  }),
});
type Values = typeof values extends fc.Arbitrary<infer T> ? T : never;

const filled = <T extends object>(map: T): T | undefined => (Object.keys(map).length === 0 ? undefined : map);

function optionsOf({ network, storage, platform, metrics, ...rest }: Values): InstallOptions {
  const { enabled, gatewayReplicas, fullMasquerade, ...given } = network;
  const labels = filled(platform.virtualNodeLabels);
  const annotations = filled(platform.gatewayAnnotations);
  const { credentials, ...plain } = rest;
  return {
    ...plain,
    ...(credentials !== undefined && { credentials }),
    ...(metrics !== false && { metrics }),
    ...(enabled && {
      network: {
        ranges: { ...given, fixed: { external: true, internal: true } },
        ...(gatewayReplicas !== undefined && { gatewayReplicas }),
        ...(fullMasquerade !== undefined && { fullMasquerade }),
      },
    }),
    ...(storage.enabled && {
      storage: {
        className: storage.className,
        capacityClassName: storage.capacityClassName,
        isDefault: storage.default,
        ...(storage.localClass !== undefined && { localClass: storage.localClass }),
      },
    }),
    platform: {
      webhookPort: platform.webhookPort,
      ...(labels && { virtualNodeLabels: labels }),
      ...(annotations && { gatewayAnnotations: annotations }),
      ...(platform.gatewayHealthPort !== undefined && { gatewayHealthPort: platform.gatewayHealthPort }),
      ...(platform.securityContextConstraints && { securityContextConstraints: true as const }),
    },
  };
}

describe('the chart', () => {
  test('makes the objects of an installation with the same options, neither more nor less', async () => {
    await fc.assert(
      fc.asyncProperty(values, async (given) => {
        expect(byName(await rendered(given))).toEqual(byName(agentManifests(optionsOf(given))));
      }),
      { numRuns: countOf(150, 12) },
    );
  }, 600_000);

  test('looks nothing up and generates nothing, so that Argo CD and Flux see no drift', () => {
    const folder = path.join(chart, 'templates');
    const drifting =
      /\b(lookup|gen(CA|SelfSignedCert|SignedCert|PrivateKey)\w*|rand(Alpha|AlphaNum|Ascii|Bytes|Int|Numeric)|uuidv4|now|htpasswd|bcrypt|derivePassword|encryptAES|getHostByName)\b/;
    const actions = readdirSync(folder).flatMap((name) =>
      [...readFileSync(path.join(folder, name), 'utf8').matchAll(/\{\{(?!- \/\*).*?\}\}/gs)].map(
        ([text]) => `${name}: ${text}`,
      ),
    );
    expect(actions.length).toBeGreaterThan(100);
    expect(actions.filter((action) => drifting.test(action.replaceAll(/"(\\.|[^"\\])*"/g, '""')))).toEqual([]);
  });

  test('runs its hooks on Linux nodes, without rights of root', async () => {
    const { stdout } = await template({ ...required, network: ranges });
    const jobs = yaml
      .parseAllDocuments(stdout)
      .map((document) => document.toJSON() as KubeObject & { spec: { template: { spec: unknown } } })
      .filter((one) => one?.kind === 'Job');
    expect(jobs.map(({ metadata }) => metadata.name).sort()).toEqual(
      ['before-delete', 'definitions', 'preflight', 'works'].map((name) => `isthmus-${name}`),
    );
    for (const { spec } of jobs) {
      // OpenShift refuses a user that a pod names itself.
      expect(JSON.stringify(spec)).not.toContain('runAsUser');
      expect(spec.template.spec).toMatchObject({
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        securityContext: { runAsNonRoot: true },
        containers: [{ securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }],
      });
    }
  });

  test('has nothing that lint complains of', async () => {
    writeFileSync(file, JSON.stringify({ ...required, network: ranges }));
    const { stdout } = await must(helm, ['lint', '--strict', chart, '--values', file, '--kube-version', '1.30.0']);
    expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
  });

  test.each([
    ['a value that there is not', { ...required, network: ranges, profile: 'aks' }, "'profile'"],
    ['another arrangement of node processes', { ...required, network: ranges, nodeProcess: 'shared' }, "'nodeProcess'"],
    ['no name and no URL', { network: ranges }, "'clusterId', 'apiServerUrl'"],
    ['a network without ranges', required, "'podCidrs', 'serviceCidr', 'externalCidr'"],
    ['a network without one range of pods', { ...required, network: { ...ranges, podCidrs: [] } }, '/network/podCidrs'],
    ['what is no range', { ...required, network: { ...ranges, serviceCidr: 'fd00::/64' } }, '/network/serviceCidr'],
    ['a name with capitals', { ...required, clusterId: 'Rome', network: ranges }, '/clusterId'],
    ['an URL without encryption', { ...required, apiServerUrl: 'http://a', network: ranges }, '/apiServerUrl'],
  ])('refuses %s by its name', async (_, given, field) => {
    const { code, stderr } = await template(given);
    expect(code).not.toBe(0);
    expect(stderr).toContain(field);
  });

  // Helm takes null for a value that is not there, as after `--reuse-values` of a release that did not know it.
  test.each([
    ['storage.capacityClassName', { storage: { capacityClassName: null } }],
    ['preflight', { preflight: null }],
    ['preflight.ignore', { preflight: { enabled: true, ignore: null } }],
    ['preflight.enabled', { preflight: { enabled: null, ignore: [] } }],
  ])('has the same objects without %s, which came after the first release, as with its default', async (_, without) => {
    const hooked = async (given: unknown): Promise<string> => {
      const { code, stdout, stderr } = await template(given);
      expect(code, stderr).toBe(0);
      return stdout;
    };
    const given = { ...required, network: ranges };
    expect(await hooked({ ...given, ...without })).toBe(await hooked(given));
  });

  test('refuses one name for both classes', async () => {
    const { code, stderr } = await template({ ...required, network: ranges, storage: { className: 'isthmus' } });
    expect(code).not.toBe(0);
    expect(stderr).toContain('storage.capacityClassName is isthmus, and so is storage.className: choose two names');
  });

  test('needs no ranges without a network', async () => {
    expect(await rendered({ ...required, network: { enabled: false } })).not.toHaveLength(0);
  });

  test.each([
    ['a release inside the namespace that it makes', ['--namespace', 'liqo'], 'makes the namespace liqo'],
    ['a cluster older than 1.30', ['--kube-version', '1.29.9'], 'kubeVersion'],
  ])('refuses %s', async (_, flags, said) => {
    const { code, stderr } = await template({ ...required, network: ranges }, ...flags);
    expect(code).not.toBe(0);
    expect(stderr).toContain(said);
  });
});
