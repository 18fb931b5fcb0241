/** Cluster A with a real API server and the real node process on each of its two nodes; cluster B is programmed by hand and answers pings like Liqo. */
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { customResourceDefinitions as crds, nodes, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { customResourceDefinitions } from '#shared/schema/crd.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { eventually } from '../../../harness/eventually.ts';
import { startApiServer, type TestApiServer } from '../../../harness/kube-apiserver.ts';
import { type Netns, NetnsFixture } from '../../../harness/netns.ts';
import {
  type LinkEnd,
  openUnderlay,
  startWireGuard,
  TestCluster,
  type TestNode,
  type TestPod,
  wireGuardKeys,
} from '../../../harness/netns-cluster.ts';
import { runtimeWarnings } from '../../../harness/runtime-warnings.ts';
import { ApiAccess } from './api-access.ts';
import { createInternalFabric, createObjects, peerId, tenant } from './objects.ts';

export const port = 8080;
const root = fileURLToPath(new URL('../../../../', import.meta.url));
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** As the DaemonSet starts it: V8's young generation is most of an idle process. */
const nodeFlags = process.env.FABRIC_NODE_FLAGS ?? '--max-semi-space-size=1 --optimize-for-size --single-threaded';

export interface GatewayReplica {
  readonly name: string;
  readonly uid: string;
  readonly pod: TestPod;
  wireguard: ChildProcess;
}

export class NodeClusters {
  readonly netns = new NetnsFixture();
  readonly #apiAccess = new ApiAccess(this.netns);
  readonly #stop = new AbortController();
  readonly #cgroup = `/sys/fs/cgroup/pids/isthmus-fabric-test-${process.pid}`;
  readonly processes = new Map<string, ChildProcess>();
  readonly replicas: GatewayReplica[] = [];
  readonly #keys = wireGuardKeys();
  #bundle = '';
  #responder: ChildProcess | undefined;
  server!: TestApiServer;
  cluster!: Cluster;
  underlay!: Netns;
  a!: TestCluster;
  b!: TestCluster;
  /** B's end of the link. */
  atB!: LinkEnd;
  podsA!: readonly [TestPod, TestPod];
  podB!: TestPod;

  async open(): Promise<void> {
    this.server = await startApiServer();
    const deps = { clock: systemClock, log: silentLog };
    this.cluster = openCluster(await connectKubeconfig(this.server.kubeconfig), deps, this.#stop.signal);
    for (const definition of customResourceDefinitions()) await this.cluster.api.create(crds, definition as never);
    await this.#openUnderlay();
    await eventually('the kinds', async () => {
      await Promise.all(Object.values(networkKinds).map((kind) => this.cluster.api.list(kind as ResourceType)));
      return true;
    });
    await this.#apiAccess.open(this.cluster.api, this.server);
    for (const node of this.a.nodes) this.#apiAccess.lead(node);
    await createObjects(this);
    for (const replica of this.replicas) await this.createPod(replica);
    await this.#bundleProcess();
  }

  async #openUnderlay(): Promise<void> {
    this.underlay = await openUnderlay(this.netns);
    this.a = new TestCluster(this.netns, this.underlay, 'a', 1);
    this.b = new TestCluster(this.netns, this.underlay, 'b', 2);
    for (const cluster of [this.a, this.b]) for (let i = 0; i < 2; i++) await cluster.addNode();
    this.atB = await this.b.addLink('to-a', this.b.nodes[0]!, 'server', this.a, { pods: 71, external: 72 });
    this.atB.peer = { publicKey: this.#keys.publicKey };
    await this.b.exposeNodePort(this.atB);
    await this.b.program();
    await this.answerPings();
    for (const [index, node] of this.a.nodes.entries()) {
      const pod = await this.a.addPod(node, 101);
      const name = `gw-${peerId}-${index + 1}`;
      this.replicas.push({ name, uid: randomUUID(), pod, wireguard: await this.startGateway(pod) });
      this.joinCgroup(this.replicas.at(-1)!);
    }
    this.podsA = [await this.a.addPod(this.a.nodes[0]!, 5), await this.a.addPod(this.a.nodes[1]!, 7)];
    this.podB = await this.b.addPod(this.b.nodes[1]!, 7);
    await Promise.all([...this.podsA, this.podB].map((pod) => pod.netns.serve(port)));
  }

  async startGateway(pod: TestPod, privateKey = this.#keys.privateKey): Promise<ChildProcess> {
    const key = this.netns.file(privateKey);
    await pod.netns.exec(
      'sh',
      '-c',
      `mountpoint -q /etc/wireguard || mount -t tmpfs none /etc/wireguard; mkdir -p /etc/wireguard/keys; cp ${key} /etc/wireguard/keys/privateKey`,
    );
    return startWireGuard(pod.netns);
  }

  joinCgroup({ uid, wireguard }: GatewayReplica): void {
    const dir = path.join(this.#cgroup, 'kubepods', `pod${uid}`, randomUUID());
    mkdirSync(dir, { recursive: true });
    writeFileSync(path.join(dir, 'cgroup.procs'), String(wireguard.pid));
  }

  /** What the kubelet does when the container has ended. */
  async restartGateway(replica: GatewayReplica): Promise<void> {
    replica.wireguard = await this.startGateway(replica.pod);
    this.joinCgroup(replica);
  }

  async answerPings(): Promise<void> {
    this.#responder = this.b.nodes[0]!.netns.start(process.execPath, script('liqo-ping.mjs'), '12345');
  }
  silence(): void {
    this.#responder?.kill('SIGKILL');
  }

  async #bundleProcess(): Promise<void> {
    this.#bundle = path.join(this.netns.folder, 'fabric.mjs');
    await build({
      absWorkingDir: root,
      entryPoints: ['agent/network/node/main.ts'],
      outfile: this.#bundle,
      bundle: true,
      platform: 'node',
      format: 'esm',
      minify: true,
      logLevel: 'warning',
    });
  }

  /**
   * As when its power fails: nothing there ends in order. Its pods come again as the kubelet starts them, at their addresses. Another machine in
   * its place has `mac`. Of the boot the cluster learns by `reportBoot`.
   */
  async reboot(node: TestNode, whileDown: () => Promise<void>, mac?: string): Promise<void> {
    await this.endProcess(node, 'SIGKILL');
    await this.a.rebootNode(node, whileDown, mac);
    this.#apiAccess.lead(node);
    for (const replica of this.replicas) if (replica.pod.node === node) await this.restartGateway(replica);
    for (const pod of this.podsA) if (pod.node === node) await pod.netns.serve(port);
    this.startProcess(node);
  }

  /** As the kubelet does when it has started. */
  async reportBoot({ name }: TestNode): Promise<void> {
    const status = { nodeInfo: { bootID: randomUUID() } };
    await this.cluster.api.mergePatch(nodes, { name }, { status } as never, { subresource: 'status' });
  }

  /** Creates or replaces; the status goes along. */
  readonly put = async <T extends KubeObject>(type: ResourceType<T>, object: object): Promise<void> => {
    const typed = object as T & { status?: unknown };
    const options = { fieldManager: 'test' };
    await this.cluster.api.apply(type, typed as never, options);
    if (typed.status !== undefined)
      await this.cluster.api.apply(type, typed as never, { ...options, subresource: 'status' });
  };

  /** Both node processes run and the link is Connected, with its path measured; what every test here begins with. */
  async bringUp(): Promise<void> {
    const began = performance.now();
    for (const node of this.a.nodes) this.startProcess(node);
    await this.createInternalFabric(await eventually('one active replica', () => this.active()));
    await eventually('the link is Connected and measured', async () => {
      const found = await this.connection();
      return found?.value === 'Connected' && found.mtu !== undefined;
    });
    console.log(`connected and measured ${Math.round(performance.now() - began)} ms after the start of both processes`);
    for (const pod of this.podsA)
      await eventually('pods reach the peer', () => pod.netns.who(this.viewOf(this.podB), port), { everyMs: 50 });
  }

  /** Address of a pod of B as A sees it. */
  readonly viewOf = ({ ip }: TestPod): string => ip.replace('10.200.', '10.71.');

  /** As the controller does it: for a link that has an active pod. */
  async createInternalFabric(active: GatewayReplica): Promise<void> {
    await createInternalFabric({ put: this.put }, active.pod.ip);
  }

  async createPod(replica: GatewayReplica, link = peerId): Promise<void> {
    const { name, pod } = replica;
    const namespace = `liqo-tenant-${link}`;
    const created = await this.cluster.api.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name,
        namespace,
        labels: { 'networking.liqo.io/component': 'gateway', 'networking.liqo.io/gateway-name': link },
      },
      spec: {
        nodeName: pod.node.name,
        automountServiceAccountToken: false,
        containers: [{ name: 'wireguard', image: 'x' }],
      },
    } as Pod);
    // The API server chooses the UID; the cgroup of the processes is named after it.
    Object.assign(replica, { uid: created.metadata.uid });
    this.joinCgroup(replica);
    await this.cluster.api.mergePatch(
      pods,
      { namespace, name },
      { status: { phase: 'Running', podIP: pod.ip, podIPs: [{ ip: pod.ip }] } },
      { subresource: 'status' },
    );
  }

  /** In `FABRIC_LOG_DIR` it stays; otherwise it goes with the world. */
  readonly #logFile = ({ name }: Pick<TestNode, 'name'>): string =>
    path.join(process.env.FABRIC_LOG_DIR ?? this.netns.folder, `${name}.log`);

  /** What Node has warned of in any life of the node processes: leaks, mostly. */
  warnings(): readonly string[] {
    const logs = (this.a?.nodes ?? []).map((node) => this.#logFile(node)).filter((file) => existsSync(file));
    return logs.flatMap((file) => runtimeWarnings(readFileSync(file, 'utf8')));
  }

  startProcess(node: TestNode): void {
    const env = {
      NODE_NAME: node.name,
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: new URL(this.server.url).port,
      ISTHMUS_SERVICE_ACCOUNT_DIRECTORY: this.#apiAccess.accountFolder,
      ISTHMUS_CNI_DIRECTORY: '/nowhere',
      TMPDIR: this.netns.folder,
      MALLOC_ARENA_MAX: '1',
      UV_THREADPOOL_SIZE: '2',
      ISTHMUS_LOG_LEVEL: process.env.FABRIC_LOG ?? 'warn',
      NODE_OPTIONS: '--trace-warnings',
    };
    const assignments = Object.entries(env).map(([key, value]) => `${key}=${value}`);
    const log = `>>${this.#logFile(node)} 2>&1`;
    const command = `exec env ${assignments.join(' ')} ${process.env.FABRIC_NODE ?? process.execPath} ${nodeFlags} ${this.#bundle} ${log}`;
    this.processes.set(
      node.name,
      this.netns.start('nsenter', ['-t', String(node.netns.pid), '-n', 'sh', '-c', command]),
    );
  }

  async endProcess(node: TestNode, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.processes.get(node.name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  }

  /** What the kernel has in nodes and gateway pods, without what traffic changes. */
  async kernelState(): Promise<Readonly<Record<string, string>>> {
    const places = [
      ...this.a.nodes.map(({ name, netns }) => ({ name, netns })),
      ...this.replicas.map(({ name, pod }) => ({ name, netns: pod.netns })),
    ];
    const texts = places.map(async ({ name, netns }) => {
      const parts = await Promise.all([
        netns.exec('nft', '-s', 'list', 'ruleset'),
        netns.exec('ip', 'rule'),
        netns.exec('ip', '-4', 'route', 'show', 'table', 'all'),
        // In the order of a hash table.
        netns.exec('sh', '-c', 'ip neigh show dev liqo-overlay nud permanent | sort'),
        netns.exec('ip', '-o', 'link', 'show', 'liqo-overlay'),
      ]);
      return [name, parts.join('\n').replaceAll(/^\d+: /gm, '')] as const;
    });
    return Object.fromEntries(await Promise.all(texts));
  }

  /** The replica whose pod is labelled, if exactly one is. */
  async active(): Promise<GatewayReplica | undefined> {
    const labelled = await this.cluster.api.list(pods, {
      namespace: tenant,
      labelSelector: 'networking.liqo.io/active=true',
    });
    return labelled.length === 1 ? this.replicas.find(({ name }) => name === labelled[0]?.metadata.name) : undefined;
  }

  async connection() {
    const found = await this.cluster.api.get(networkKinds.connections, { namespace: tenant, name: `gw-${peerId}` });
    return found?.status;
  }

  /** Rejects, once everything is gone, when a node process has been warned of a leak. */
  async close(): Promise<void> {
    for (const node of this.a?.nodes ?? []) await this.endProcess(node, 'SIGKILL');
    const warnings = this.warnings();
    this.#stop.abort();
    this.#apiAccess.close();
    await this.a?.close();
    await this.b?.close();
    await this.netns.close();
    await eventually('the control groups are empty', () => removeTree(this.#cgroup), { withinMs: 30_000 });
    await this.server?.stop();
    if (warnings.length > 0) throw new Error(`node processes were warned:\n${warnings.join('\n')}`);
  }
}

/** Control groups are removed as folders, from the leaves up, once no process is in them. */
function removeTree(dir: string): boolean {
  try {
    for (const entry of readdirSync(dir, { withFileTypes: true }))
      if (entry.isDirectory()) removeTree(path.join(dir, entry.name));
    rmdirSync(dir);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === 'ENOENT';
  }
}
