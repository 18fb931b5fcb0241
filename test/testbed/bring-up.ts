/** Brings one cluster up: namespaces, network, certificates, daemons, add-ons; as much as possible at the same time. */
import { closeSync, openSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, statfs, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';
import { addonsOf } from './addons.ts';
import { type Access, callApi, waitUntilReady } from './api-ready.ts';
import { nodeGroup } from './cgroups.ts';
import { type Component, clusterDir, componentsOf } from './cluster-state.ts';
import { debianPlugins, pluginFolder } from './cni/folders.ts';
import { apiServerUrl, kubeconfigOf, writeCredentials } from './control-plane.ts';
import { commandLine, controlPlaneOf, variables } from './daemons.ts';
import type { BedImages } from './images.ts';
import { connectCluster } from './internet.ts';
import { execInNode, lastWords, type NodePlace, nodeDir, startDaemon, startNamespaces, waitForSocket } from './node.ts';
import { containerdSocket, inNode, masqueradeFile, nodeFiles } from './node-config.ts';
import type { CertificateAuthority } from './pki.ts';
import { endProcess, runningComponents } from './processes.ts';
import { silentSince, waitingFor } from './readiness.ts';
import { type ClusterSpec, type NodeSpec, nodeAddress, type OtherCni, type OtherKubernetes } from './spec.ts';

/** Of a machine with other work: an API server that is still starting after two minutes is slow, one that has ended is told at once. */
const apiReadyMs = 300_000;

export interface BedContext {
  readonly slot: number;
  readonly dir: string;
  readonly kubebox: string;
  readonly nodebox: string;
  /** Of other versions that clusters of the bed ask for; without etcd. */
  readonly kubernetes: ReadonlyMap<OtherKubernetes, string>;
  /** Undefined: no cluster of the bed has storage. */
  readonly loopbox: string | undefined;
  readonly images: BedImages;
  /** Of the CNIs that clusters of the bed ask for. */
  readonly cniImages: ReadonlyMap<OtherCni, string>;
  readonly log: (line: string) => void;
}

const overlayMagic = 0x794c7630;

export const placeOf = (
  bed: { readonly slot: number; readonly dir: string },
  spec: ClusterSpec,
  node: string,
): NodePlace => ({
  slot: bed.slot,
  node,
  clusterDir: clusterDir(bed.dir, spec.name),
});

async function adminAccess(bedDir: string, spec: ClusterSpec): Promise<Access> {
  const pki = (name: string): Promise<string> =>
    readFile(path.join(clusterDir(bedDir, spec.name), 'pki', name), 'utf8');
  const [ca, cert, key] = await Promise.all([pki('ca.crt'), pki('admin.crt'), pki('admin.key')]);
  return { url: apiServerUrl(controlPlaneOf(spec, '')), ca, cert, key };
}

const notYet: ReadonlySet<number> = new Set([403, 404, 429, 500, 503]);

class Bringing {
  readonly #bed: BedContext;
  readonly #spec: ClusterSpec;
  readonly #pids = new Map<string, number>();

  constructor(bed: BedContext, spec: ClusterSpec) {
    this.#bed = bed;
    this.#spec = spec;
  }

  get #dir(): string {
    return clusterDir(this.#bed.dir, this.#spec.name);
  }

  place(node: string): NodePlace {
    return placeOf(this.#bed, this.#spec, node);
  }

  adopt(running: ReadonlyMap<string, number>): void {
    for (const { name } of this.#spec.nodes) this.#pids.set(name, running.get(`${name}/init`) ?? 0);
  }

  pid(node: string): number {
    return this.#pids.get(node) ?? 0;
  }

  async prepare(): Promise<void> {
    await mkdir(this.#dir, { recursive: true });
    if (this.#spec.storage && this.#bed.loopbox) await copyFile(this.#bed.loopbox, path.join(this.#dir, 'loopbox'));
    const { kubernetes } = this.#spec;
    const other = kubernetes && this.#bed.kubernetes.get(kubernetes);
    if (other !== undefined) await copyFile(other, path.join(this.#dir, 'kubebox'));
    const [credentials] = await Promise.all([
      writeCredentials(controlPlaneOf(this.#spec, this.#dir)),
      ...this.#spec.nodes.map(async ({ name }) => {
        this.#pids.set(name, await startNamespaces(this.place(name), this.#bed, this.#spec.cni !== undefined));
      }),
    ]);
    await Promise.all([
      connectCluster(this.#bed.slot, this.#spec, this.#pids),
      ...this.#spec.nodes.map((node) => this.#writeNodeFiles(node, credentials.ca)),
    ]);
  }

  async #writeNodeFiles(node: NodeSpec, ca: CertificateAuthority): Promise<void> {
    const dir = nodeDir(this.place(node.name));
    const url = apiServerUrl(controlPlaneOf(this.#spec, ''));
    const pair = await ca.issue({
      commonName: `system:node:${node.name}`,
      organization: 'system:nodes',
      ips: [...new Set([node.ip, nodeAddress(node)])],
      dnsNames: [node.name],
    });
    const snapshotter = (await statfs(dir)).type === overlayMagic ? 'native' : 'overlayfs';
    const files = {
      ...nodeFiles(this.#spec, node, { cgroupRoot: `/${nodeGroup(this.#bed.slot, node.name)}`, snapshotter }),
      'kubelet.conf': kubeconfigOf(this.#spec.name, url, ca.cert, pair),
      'kubelet.crt': pair.cert,
      'kubelet.key': pair.key,
    };
    await mkdir(path.join(dir, 'cni'), { recursive: true });
    if (this.#spec.cni !== undefined) await linkPlugins(path.join(dir, pluginFolder));
    await Promise.all(
      Object.entries(files).map(([name, text]) => writeFile(path.join(dir, name), text, { mode: 0o600 })),
    );
  }

  async start(node: NodeSpec, component: Component): Promise<void> {
    const argv = commandLine(this.#bed.slot, this.#spec, node, component);
    await startDaemon(this.place(node.name), this.pid(node.name), component, argv, variables(this.#spec, component));
  }

  #isRunning(node: string, component: Component): boolean {
    return runningComponents(this.#bed.slot).has(`${node}/${component}`);
  }

  /** The API server, without a supervisor: when it or etcd ends early, its last words are the error. */
  async waitForApiServer(): Promise<void> {
    const first = this.#spec.nodes[0]?.name ?? '';
    const access = await adminAccess(this.#bed.dir, this.#spec);
    await waitUntilReady(access, apiReadyMs, () => {
      const dead = (['etcd', 'kube-apiserver'] as const).find((component) => !this.#isRunning(first, component));
      return dead && lastWords(this.place(first), dead);
    });
  }

  async startRuntime(node: NodeSpec): Promise<void> {
    await this.start(node, 'containerd');
    await this.waitForRuntime(node);
    const { cni, nodes } = this.#spec;
    const { everywhere, coreDns } = this.#bed.images;
    const ofCni = cni && this.#bed.cniImages.get(cni);
    const tars = [...everywhere, ...(node.name === nodes[0]?.name ? [coreDns] : []), ...(ofCni ? [ofCni] : [])];
    const [place, pid] = [this.place(node.name), this.pid(node.name)];
    await Promise.all([
      ...(cni === undefined ? [execInNode(place, pid, 'nft', ['-f', `${inNode.node}/${masqueradeFile}`])] : []),
      ...tars.map((tar) => importInto(place, pid, tar)),
    ]);
  }

  async waitForRuntime(node: NodeSpec): Promise<void> {
    const alive = (): boolean => this.#isRunning(node.name, 'containerd');
    if (!(await waitForSocket(this.pid(node.name), containerdSocket, 30_000, alive))) {
      throw new AppError('command_failed', lastWords(this.place(node.name), 'containerd'));
    }
  }

  async applyAddons(): Promise<void> {
    const access = await adminAccess(this.#bed.dir, this.#spec);
    const end = performance.now() + 30_000;
    for (const { path: target, object } of addonsOf(this.#spec)) {
      const apply = () => callApi(access, `${target}?fieldManager=testbed&force=true`, 'PATCH', object);
      let answer = await apply();
      // Some of what a ready API server needs for this it makes in the background: its namespaces, its range of Services.
      for (; notYet.has(answer.status) && performance.now() < end; answer = await apply()) await delay(250);
      if (answer.status > 299)
        throw new AppError('kube_failed', `${this.#spec.name} refused ${target}: ${answer.body}`);
    }
  }

  /**
   * All nodes Ready, cluster DNS answering, every daemon alive. `startedAgain`: nodes whose kubelet was; what their Nodes say counts from
   * `sinceMs` on, since a dead kubelet is missed only 40 s later.
   */
  async waitForNodes(startedAgain: readonly string[] = [], sinceMs = 0): Promise<void> {
    const access = await adminAccess(this.#bed.dir, this.#spec);
    const end = performance.now() + 180_000;
    for (;;) {
      const waiting = (await waitingFor(access, this.#spec)) ?? (await silentSince(access, startedAgain, sinceMs));
      const dead = this.#spec.nodes
        .flatMap(({ name }) => componentsOf(this.#spec, name).map((component) => ({ name, component })))
        .find(({ name, component }) => !this.#isRunning(name, component));
      if (dead) throw new AppError('command_failed', lastWords(this.place(dead.name), dead.component));
      if (waiting === undefined) return;
      if (performance.now() > end)
        throw new AppError(
          'deadline_exceeded',
          `${this.#spec.name} did not become ready: ${waiting}; logs are in ${this.#dir}/logs`,
        );
      await delay(150);
    }
  }
}

/** The CNI of a cluster puts its own plugin beside Debian's, in a folder of the node. */
async function linkPlugins(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const names = await readdir(debianPlugins);
  await Promise.all(names.map((name) => symlink(path.join(debianPlugins, name), path.join(folder, name))));
}

/** Streams the file, so that it may lie where the node does not see it. */
export async function importInto(place: NodePlace, pid: number, tar: string): Promise<void> {
  const stdin = openSync(tar, 'r');
  try {
    await execInNode(place, pid, 'ctr', ['--namespace', 'k8s.io', 'images', 'import', '-'], { stdin });
  } finally {
    closeSync(stdin);
  }
}

export async function createCluster(bed: BedContext, spec: ClusterSpec): Promise<void> {
  const startedAt = Date.now();
  const say = (what: string): void =>
    bed.log(`${spec.name}: ${what} after ${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  const bringing = new Bringing(bed, spec);
  const [first] = spec.nodes;
  if (!first) throw new AppError('invalid_input', `cluster ${spec.name} has no node`);
  await bringing.prepare();
  await Promise.all([bringing.start(first, 'etcd'), bringing.start(first, 'kube-apiserver')]);
  const runtimes = Promise.all(spec.nodes.map((node) => bringing.startRuntime(node)));
  runtimes.catch(() => undefined); // its failure is thrown below, not while the API server is awaited
  await bringing.waitForApiServer();
  say('API server ready');
  const controllers = (['kube-controller-manager', 'kube-scheduler'] as const).map((component) =>
    bringing.start(first, component),
  );
  await Promise.all([...controllers, bringing.applyAddons(), runtimes]);
  await Promise.all(
    spec.nodes.flatMap((node) => [
      bringing.start(node, 'kubelet'),
      bringing.start(node, 'kube-proxy'),
      ...(spec.storage ? [bringing.start(node, 'loopbox')] : []),
    ]),
  );
  await bringing.waitForNodes();
  say('ready');
}

/** Starts again what has died in a cluster whose nodes still stand. */
export async function repairCluster(
  bed: BedContext,
  spec: ClusterSpec,
  missing: readonly { readonly node: string; readonly component: Component }[],
): Promise<void> {
  const bringing = new Bringing(bed, spec);
  bringing.adopt(runningComponents(bed.slot));
  const beganAt = Date.now();
  const order: readonly Component[] = componentsOf(spec, spec.nodes[0]?.name ?? '');
  const sorted = [...missing].sort((a, b) => order.indexOf(a.component) - order.indexOf(b.component));
  for (const { node: name, component } of sorted) {
    const node = spec.nodes.find((each) => each.name === name);
    if (!node) continue;
    bed.log(`${spec.name}: starting ${component} of ${name} again`);
    await bringing.start(node, component);
    if (component === 'kube-apiserver') await bringing.waitForApiServer();
    if (component === 'containerd') await bringing.waitForRuntime(node);
  }
  const kubelets = sorted.filter(({ component }) => component === 'kubelet').map(({ node }) => node);
  await bringing.waitForNodes(kubelets, beganAt);
}

/** Starts the API server of a cluster and waits until it is ready. */
export async function startApiServerAgain(bed: Pick<BedContext, 'slot' | 'dir'>, spec: ClusterSpec): Promise<void> {
  const [first] = spec.nodes;
  const running = runningComponents(bed.slot);
  const pid = running.get(`${first?.name}/init`);
  if (!first || pid === undefined) throw new AppError('not_found', `cluster ${spec.name} is not up`);
  const place = placeOf(bed, spec, first.name);
  if (!running.has(`${first.name}/kube-apiserver`)) {
    const argv = commandLine(bed.slot, spec, first, 'kube-apiserver');
    await startDaemon(place, pid, 'kube-apiserver', argv, variables(spec, 'kube-apiserver'));
  }
  await waitUntilReady(await adminAccess(bed.dir, spec), apiReadyMs, () =>
    runningComponents(bed.slot).has(`${first.name}/kube-apiserver`) ? undefined : lastWords(place, 'kube-apiserver'),
  );
}

/** Restarts a component of the control plane with further flags, which win over the bed's own. */
export async function restartController(
  bed: Pick<BedContext, 'slot' | 'dir'>,
  spec: ClusterSpec,
  component: 'kube-controller-manager' | 'kube-scheduler',
  flags: readonly string[],
): Promise<void> {
  const [first] = spec.nodes;
  const running = runningComponents(bed.slot);
  const pid = running.get(`${first?.name}/init`);
  if (!first || pid === undefined) throw new AppError('not_found', `cluster ${spec.name} is not up`);
  const old = running.get(`${first.name}/${component}`);
  if (old !== undefined) await endProcess(old, 5_000);
  const argv = [...commandLine(bed.slot, spec, first, component), ...flags];
  await startDaemon(placeOf(bed, spec, first.name), pid, component, argv, variables(spec, component));
}
