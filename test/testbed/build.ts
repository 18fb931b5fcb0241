/** The test bed's own Go programs, built once per content. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type BuildOptions, buildGoProgram, type GoProgram, sourcesOf } from '#scripts/setup/go-program.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { repositoryRoot } from './repository-root.ts';
import type { OtherKubernetes } from './spec.ts';

const testbedFolder = path.join(repositoryRoot, 'test', 'testbed');
const coreDnsModule = 'github.com/coredns/coredns@v1.12.4';
const metricsServerModule = 'sigs.k8s.io/metrics-server/cmd/metrics-server@v0.9.0';
const helmModule = 'helm.sh/helm/v3/cmd/helm@v3.19.0';
const flannelPluginModule = 'github.com/containernetworking/plugins/plugins/meta/flannel@v0.9.1';
const kwokModule = 'sigs.k8s.io/kwok/cmd/kwok@v0.7.0';

/** The version of `module` that a go.mod requires. */
function requiredVersion(goMod: string, module: string): string {
  const found = new RegExp(`^\\s*(?:require )?${module.replaceAll('.', '\\.')} (v[^\\s]+)`, 'm').exec(goMod)?.[1];
  if (!found) throw new AppError('invalid_input', `go.mod does not require ${module}`);
  return found;
}

const readGoMod = (folder: string): Promise<string> => readFile(path.join(testbedFolder, folder, 'go.mod'), 'utf8');
const goDirective = (goMod: string): string => /^go (\S+)/m.exec(goMod)?.[1] ?? '1.24';
type About = Pick<GoProgram, 'about' | 'expectedSeconds'>;
const stripped = ['-ldflags', '-s -w'];

/** A module in a folder of the test bed. */
async function buildOurs(name: string, flags: readonly string[], about: About, options: BuildOptions) {
  const minimumGo = goDirective(await readGoMod(name));
  const source = { folder: path.join(testbedFolder, name) };
  return await buildGoProgram({ name, source, flags, minimumGo, ...about }, options);
}

async function buildTheirs(name: string, module: string, about: About, options: BuildOptions) {
  const minimumGo = goDirective(await readGoMod('kubebox'));
  return await buildGoProgram({ name, source: { module }, flags: stripped, minimumGo, ...about }, options);
}

/** Says which Kubernetes it is: built as a module, its programs believe in v0.0.0. */
async function kubernetesFlags(folder: string, tags: readonly string[] = []): Promise<string[]> {
  const version = requiredVersion(await readGoMod(folder), 'k8s.io/kubernetes');
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  const stamps = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const stampFlags = Object.entries(stamps).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ['-tags', ['providerless', 'dockerless', ...tags].join(), '-ldflags', ['-s', '-w', ...stampFlags].join(' ')];
}

/** Every component of Kubernetes, etcd and kubectl in one binary: `kubebox kube-apiserver …`, `kubebox kubectl …`. */
export async function buildKubebox(options: BuildOptions = {}): Promise<string> {
  const about = { about: 'Kubernetes and etcd', expectedSeconds: 360 };
  return await buildOurs('kubebox', await kubernetesFlags('kubebox'), about, options);
}

/** The Kubernetes of clusters that ask for no other one: `1.34`. */
export async function usualKubernetes(): Promise<string> {
  const [, minor = ''] = /^v(\d+\.\d+)/.exec(requiredVersion(await readGoMod('kubebox'), 'k8s.io/kubernetes')) ?? [];
  return minor;
}

/** The same components, without etcd, of another Kubernetes. */
export async function buildKubernetes(version: OtherKubernetes, options: BuildOptions = {}): Promise<string> {
  const requires = path.join('versions', version);
  const tags = ['without_etcd', ...(Number(version.slice(2)) < 34 ? ['before_1_34'] : [])];
  const flags = await kubernetesFlags(path.join('kubebox', requires), tags);
  const source = { folder: path.join(testbedFolder, 'kubebox'), requires };
  const minimumGo = goDirective(await readGoMod(path.join('kubebox', requires)));
  const about = { about: `Kubernetes ${version}`, expectedSeconds: 510 };
  return await buildGoProgram({ name: `kubebox-${version}`, source, flags, minimumGo, ...about }, options);
}

/** Not part of a bed: Kubernetes' own end-to-end suite. Its modules are those of kubebox, so that what that compiled is there. */
export async function buildConformancebox(options: BuildOptions = {}): Promise<string> {
  const about = { about: "Kubernetes' own suite", expectedSeconds: 200 };
  return await buildOurs('conformancebox', await kubernetesFlags('conformancebox'), about, options);
}

/** A program that the module of `conformancebox` names as a tool. */
const buildSuiteTool = async (name: string, tool: string, about: About, options: BuildOptions): Promise<string> =>
  await buildGoProgram(
    {
      name,
      source: { folder: path.join(testbedFolder, 'conformancebox'), package: tool },
      flags: stripped,
      minimumGo: goDirective(await readGoMod('conformancebox')),
      ...about,
    },
    options,
  );

/** What pods of Kubernetes' own suite run. */
export const buildAgnhost = (options: BuildOptions = {}): Promise<string> =>
  buildSuiteTool(
    'agnhost',
    'k8s.io/kubernetes/test/images/agnhost',
    { about: "what pods of Kubernetes' suite run", expectedSeconds: 10 },
    options,
  );

/** Files that stand beside it in its image, by name: certificate and key of its web server. */
export async function agnhostFiles(options: BuildOptions = {}): Promise<ReadonlyMap<string, Buffer>> {
  const folder = path.join(testbedFolder, 'conformancebox');
  const sources = await sourcesOf('k8s.io/kubernetes', folder, goDirective(await readGoMod('conformancebox')), options);
  const names = ['localhost.crt', 'localhost.key'];
  const read = names.map((name) => readFile(path.join(sources, 'test', 'images', 'agnhost', 'porter', name)));
  return new Map((await Promise.all(read)).map((content, at) => [names[at] ?? '', content]));
}

/** What a pod of the suite runs to see whether it may gain rights. */
export const buildNonewprivs = (options: BuildOptions = {}): Promise<string> =>
  buildSuiteTool(
    'nnp',
    'k8s.io/kubernetes/test/images/nonewprivs',
    { about: 'says whose rights it has', expectedSeconds: 5 },
    options,
  );

/** Runs several specs of the suite at a time. */
export const buildGinkgo = (options: BuildOptions = {}): Promise<string> =>
  buildSuiteTool('ginkgo', 'github.com/onsi/ginkgo/v2/ginkgo', { about: 'runs specs', expectedSeconds: 10 }, options);

export const buildCoreDns = (options: BuildOptions = {}): Promise<string> =>
  buildTheirs('coredns', coreDnsModule, { about: 'DNS of the clusters', expectedSeconds: 240 }, options);

/** Plays kubelets of nodes that have no machine; for measurements. */
export const buildKwok = (options: BuildOptions = {}): Promise<string> =>
  buildTheirs('kwok', kwokModule, { about: 'nodes without machines', expectedSeconds: 60 }, options);

/** Not part of a bed; for tests of the chart. Told which Kubernetes it is for: built from modules it believes in 1.20. */
export async function buildHelm(options: BuildOptions = {}): Promise<string> {
  const goMod = await readGoMod('kubebox');
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(requiredVersion(goMod, 'k8s.io/kubernetes')) ?? [];
  const stamp = 'helm.sh/helm/v3/pkg/chartutil.k8sVersion';
  const flags = ['-ldflags', `-s -w -X ${stamp}Major=${major} -X ${stamp}Minor=${minor}`];
  const about = { about: 'installs charts', expectedSeconds: 120 };
  return await buildGoProgram(
    { name: 'helm', source: { module: helmModule }, flags, minimumGo: goDirective(goMod), ...about },
    options,
  );
}

/** Not part of a bed; installs plugins of kubectl, from a manifest and an archive without any network. */
export async function buildKrew(options: BuildOptions = {}): Promise<string> {
  const source = { folder: path.join(testbedFolder, 'krew'), package: 'sigs.k8s.io/krew/cmd/krew' };
  const about = { about: 'installs plugins of kubectl', expectedSeconds: 60 };
  const minimumGo = goDirective(await readGoMod('krew'));
  return await buildGoProgram({ name: 'krew', source, flags: stripped, minimumGo, ...about }, options);
}

/** The folder of the definitions of VolumeSnapshots and their kin, one file for each kind. */
export async function snapshotDefinitionsFolder(options: BuildOptions = {}): Promise<string> {
  const folder = path.join(testbedFolder, 'snapshotbox');
  const minimumGo = goDirective(await readGoMod('snapshotbox'));
  const module = 'github.com/kubernetes-csi/external-snapshotter/client/v8';
  return path.join(await sourcesOf(module, folder, minimumGo, options), 'config', 'crd');
}

/** Not part of a bed: what takes snapshots in a cluster, and what asks a CSI driver for them. */
export async function buildSnapshotter(
  name: 'snapshot-controller' | 'csi-snapshotter',
  options: BuildOptions = {},
): Promise<string> {
  const tool = `github.com/kubernetes-csi/external-snapshotter/v8/cmd/${name}`;
  return await buildGoProgram(
    {
      name,
      source: { folder: path.join(testbedFolder, 'snapshotbox'), package: tool },
      flags: stripped,
      minimumGo: goDirective(await readGoMod('snapshotbox')),
      about: "of Kubernetes' external-snapshotter",
      expectedSeconds: 60,
    },
    options,
  );
}

const liqoPackage = 'github.com/liqotech/liqo';

/** The version of Liqo that is built, without its `v`. */
export const liqoVersion = async (): Promise<string> => requiredVersion(await readGoMod('liqo'), liqoPackage).slice(1);

/** Programs of Liqo that its images carry, and its command line. */
export const liqoPrograms = [
  'liqo-controller-manager',
  'crd-replicator',
  'webhook',
  'virtual-kubelet',
  'liqoctl',
] as const;
export type LiqoProgram = (typeof liqoPrograms)[number];

/** Not part of a bed; what a peer runs that has Liqo. The first of them compiles what all share. */
export async function buildLiqo(name: LiqoProgram, options: BuildOptions = {}): Promise<string> {
  const goMod = await readGoMod('liqo');
  const version = requiredVersion(goMod, liqoPackage);
  return await buildGoProgram(
    {
      name,
      source: { folder: path.join(testbedFolder, 'liqo'), package: `${liqoPackage}/cmd/${name}` },
      flags: ['-ldflags', `-s -w -X ${liqoPackage}/pkg/liqoctl/version.LiqoctlVersion=${version}`],
      minimumGo: goDirective(goMod),
      about: 'of Liqo',
      expectedSeconds: 240,
    },
    options,
  );
}

/** The folder of Liqo's own Helm chart. */
export async function liqoChart(options: BuildOptions = {}): Promise<string> {
  const sources = await sourcesOf(
    liqoPackage,
    path.join(testbedFolder, 'liqo'),
    goDirective(await readGoMod('liqo')),
    options,
  );
  return path.join(sources, 'deployments', 'liqo');
}

/** Not part of a bed; for tests of what it measures. */
export const buildMetricsServer = (options: BuildOptions = {}): Promise<string> =>
  buildTheirs('metrics-server', metricsServerModule, { about: 'measures pods', expectedSeconds: 120 }, options);

/** Not part of a bed; tells the health of objects as Flux does. */
export const buildFluxHealth = (options: BuildOptions = {}): Promise<string> =>
  buildOurs('flux-health', stripped, { about: "Flux's health checks", expectedSeconds: 270 }, options);

/** The program in the test workload image; its sub-command `pause` is the sandbox container. */
export const buildWorkload = (options: BuildOptions = {}): Promise<string> =>
  buildOurs('workload', ['-trimpath', ...stripped], { about: 'what test pods run', expectedSeconds: 10 }, options);

/** Process 1 of every node. */
const buildNodebox = (options: BuildOptions = {}): Promise<string> =>
  buildOurs('nodebox', ['-trimpath', ...stripped], { about: 'process 1 of nodes', expectedSeconds: 10 }, options);

/** CSI driver and provisioner of clusters that have storage. */
export const buildLoopbox = (options: BuildOptions = {}): Promise<string> =>
  buildOurs('loopbox', stripped, { about: 'storage of nodes', expectedSeconds: 130 }, options);

/** Clusters with Flannel. Its plugin is the one of containernetworking/plugins before it got a repository of its own. */
export async function buildFlanneld(options: BuildOptions = {}): Promise<string> {
  const goMod = await readGoMod('flannelbox');
  return await buildGoProgram(
    {
      name: 'flanneld',
      source: { folder: path.join(testbedFolder, 'flannelbox'), package: 'github.com/flannel-io/flannel' },
      flags: stripped,
      cgo: true,
      minimumGo: goDirective(goMod),
      about: 'pods of Flannel',
      expectedSeconds: 130,
    },
    options,
  );
}

export const buildFlannelPlugin = (options: BuildOptions = {}): Promise<string> =>
  buildTheirs('flannel', flannelPluginModule, { about: 'network of a pod of Flannel', expectedSeconds: 10 }, options);

/** Clusters with the Amazon VPC CNI. */
export const buildVpcbox = (options: BuildOptions = {}): Promise<string> =>
  buildOurs('vpcbox', stripped, { about: 'addresses of pods in a VPC', expectedSeconds: 60 }, options);

export async function buildVpcPlugin(options: BuildOptions = {}): Promise<string> {
  const plugin = 'github.com/aws/amazon-vpc-cni-k8s/cmd/routed-eni-cni-plugin';
  return await buildGoProgram(
    {
      name: 'aws-cni',
      source: { folder: path.join(testbedFolder, 'vpcbox'), package: plugin },
      flags: stripped,
      minimumGo: goDirective(await readGoMod('vpcbox')),
      about: 'network of a pod in a VPC',
      // Its module draws in all of EC2's client.
      expectedSeconds: 180,
    },
    options,
  );
}

/** Not part of a bed; the suite of the Container Storage Interface for drivers. */
export async function buildCsiSanity(options: BuildOptions = {}): Promise<string> {
  const source = {
    folder: path.join(testbedFolder, 'csi-sanity'),
    package: 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity',
  };
  const about = { about: 'asks CSI drivers', expectedSeconds: 40 };
  const minimumGo = goDirective(await readGoMod('csi-sanity'));
  return await buildGoProgram({ name: 'csi-sanity', source, flags: stripped, minimumGo, ...about }, options);
}

/** What a test bed is made of, the longest first. */
export const bedPrograms = {
  kubebox: buildKubebox,
  coreDns: buildCoreDns,
  workload: buildWorkload,
  nodebox: buildNodebox,
} as const;
