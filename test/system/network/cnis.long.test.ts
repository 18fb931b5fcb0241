/** For each CNI that the test bed has besides its bridge: two clusters with the same ranges, joined and peered, and what crosses the link between them. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { openProductClusters, type ProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { must, run } from '#test/harness/program.ts';
import { buildCniImage } from '#test/testbed/cni/images.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type OtherCni, otherCnis } from '#test/testbed/spec.ts';
import type { BedNode } from '#test/testbed/testbed.ts';
import { container, pod } from '../whole-clusters/workloads.ts';
import { networkTest } from './network-test.ts';

vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
const patience = { withinMs: 120_000, everyMs: 500 } as const;
/** `ISTHMUS_KEEP_CLUSTERS=1` leaves everything running, and the next run starts from it. */
const keep = process.env.ISTHMUS_KEEP_CLUSTERS === '1';
const ranges = { nodes: 2, podCidr: '10.50.0.0/16', serviceCidr: '10.150.0.0/16' } as const;
/** What each cluster calls the pods of the other: the first range that is free for it. */
const view = (ip: string): string => ip.replace(/^10\.50\./, '10.51.');
const names = ['rome', 'milan'] as const;

interface Expected {
  /** What `isthmus check` says, and what node processes call it. */
  readonly check: RegExp;
  readonly traits: string;
  /** Pods reach peers by the address of their node. */
  readonly hidden: boolean;
  /** What its pods have on their node. */
  looks(node: BedNode, other: BedNode, podIps: readonly string[]): Promise<void>;
}

const routeTo = async (node: BedNode, address: string): Promise<string> =>
  (await node.exec('ip', ['route', 'get', address])).split('\n')[0] ?? '';
const rulesOf = (node: BedNode): Promise<string> => node.exec('ip', ['rule']);

const expected: Readonly<Record<OtherCni, Expected>> = {
  'flannel-host-gw': {
    check: /^Flannel \(DaemonSet kube-flannel\/kube-flannel-ds\): backend host-gw$/,
    traits: 'flannel',
    hidden: false,
    async looks(node, other) {
      expect(await routeTo(node, '10.50.1.9')).toContain(`10.50.1.9 via ${other.ip} dev eth0`);
      expect(await node.exec('iptables', ['-t', 'nat', '-S'])).toContain('FLANNEL-POSTRTG');
    },
  },
  'flannel-vxlan': {
    check: /^Flannel \(DaemonSet kube-flannel\/kube-flannel-ds\): backend vxlan$/,
    traits: 'flannel',
    hidden: false,
    async looks(node) {
      expect(await routeTo(node, '10.50.1.9')).toContain('10.50.1.9 via 10.50.1.0 dev flannel.1');
      expect(await node.exec('iptables', ['-t', 'nat', '-S'])).toContain('FLANNEL-POSTRTG');
    },
  },
  vpc: {
    check: /^Amazon VPC CNI \(DaemonSet kube-system\/aws-node\): AWS_VPC_K8S_CNI_EXTERNALSNAT=false$/,
    traits: 'aws',
    hidden: true,
    async looks(node, _other, podIps) {
      const rules = await rulesOf(node);
      expect(rules).toContain('1024:\tfrom all fwmark 0x80/0x80 lookup main');
      for (const ip of podIps) expect(rules).toContain(`512:\tfrom all to ${ip} lookup main`);
      // Of pods whose address belongs to the second interface.
      for (const ip of podIps.filter((each) => Number(each.split('.')[3]) % 64 > 2))
        expect(rules).toContain(`1536:\tfrom ${ip} lookup 2`);
      expect(await node.exec('iptables', ['-t', 'nat', '-S', 'AWS-SNAT-CHAIN-0'])).toContain(
        '--to-source 10.50.0.11 --random-fully',
      );
    },
  },
};

describe.each(otherCnis)('with %s', (cni) => {
  const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', `cni-${cni}`) };
  let world: ProductClusters;

  // In this order: each test finds what the ones before it left.
  inOrder('describe');
  beforeAll(async () => {
    if (!keep) await removeProductClusters(place);
    // For minutes, once on a machine: not while clusters of other files wait to boot.
    await buildCniImage(cni, cacheDir(), (line) => console.error(line));
    const clusters = names.map((name) => ({ name, ...ranges, cni }));
    world = await openProductClusters({ ...place, clusters, brokerPort: 7696 });
  }, 1_200_000);
  afterAll(async () => {
    if (!keep) await world?.close();
  }, 180_000);

  const target = (name: string): string[] => ['--kubeconfig', world.cluster(name).kubeconfigPath];
  const kubectl = (name: string, ...args: readonly string[]): Promise<string> => world.cluster(name).kubectl(...args);
  async function apply(name: string, ...objects: readonly object[]): Promise<void> {
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    await eventually(
      `${name} to take it`,
      async () => {
        const line = [...target(name), 'apply', '-f', '-'];
        const { code, stderr } = await run(path.join(world.bed.dir, 'kubectl'), line, { input: list });
        if (code !== 0) throw new Error(stderr);
        return true;
      },
      patience,
    );
  }
  const podIp = (cluster: string, namespace: string, name: string): Promise<string> =>
    kubectl(cluster, '-n', namespace, 'get', 'pod', name, '-o', 'jsonpath={.status.podIP}');
  /** The address that the called one sees; tried until there is an answer, since kube-proxy follows its objects with a delay. */
  const seen = async (cluster: string, namespace: string, from: string, address: string): Promise<string> => {
    const call = ['-n', namespace, 'exec', from, '--', 'get', `http://${address}/remote`];
    const answer = await eventually(`${from} to get ${address}`, () => kubectl(cluster, ...call), patience);
    return answer.trim().replace(/:\d+$/, '');
  };

  const serve = [container(['serve'], { ports: [{ containerPort: 8080 }] })];

  test("pods of one cluster have what that CNI makes, and reach each other's nodes", async () => {
    for (const name of names) {
      const [first, second] = world.cluster(name).nodes as [BedNode, BedNode];
      await apply(
        name,
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'home' } },
        // More than the first interface of a node in a VPC has addresses for.
        ...['one', 'two', 'three', 'four'].map((one) => pod('home', one, serve, { nodeName: first.name })),
        pod('home', 'away', serve, { nodeName: second.name }),
      );
      await kubectl(name, '-n', 'home', 'wait', 'pod', '--all', '--for=condition=Ready', '--timeout=180s');
      const ips = await Promise.all(['one', 'two', 'three', 'four'].map((one) => podIp(name, 'home', one)));
      await expected[cni].looks(first, second, ips);
      const away = await podIp(name, 'home', 'away');
      expect(await seen(name, 'home', 'four', `${away}:8080`)).toBe(ips[3]);
    }
  });

  test('`isthmus check` says which CNI it is and finds nothing that stops it; both join, and node processes know it', async () => {
    // Nothing in a cluster tells the range of its VPC.
    const told = cni === 'vpc' ? ['--pod-cidr', ranges.podCidr] : [];
    for (const name of names) {
      const text = await world.mustIsthmus('check', ...target(name), ...told, '-o', 'json');
      const { findings } = JSON.parse(text) as { findings: { check: string; outcome: string; text: string }[] };
      const own = findings.filter(({ check }) => check === 'cni');
      expect(own.map(({ outcome }) => outcome)).toEqual(['ok']);
      expect(own[0]?.text).toMatch(expected[cni].check);
      await world.join(name, ...told);
      await kubectl(name, '-n', systemNamespace, 'rollout', 'status', `daemonset/${fabricName}`, '--timeout=180s');
      const logs = await kubectl(name, '-n', systemNamespace, 'logs', `daemonset/${fabricName}`);
      expect(logs).toContain(`"cni":"${expected[cni].traits}"`);
    }
  });

  test.each([
    ['rome', 'milan'],
    ['milan', 'rome'],
  ] as const)(
    '%s borrows from %s: pods, Services and NodePorts answer across, both ways',
    async (consumer, provider) => {
      await world.mustIsthmus('peer', consumer, provider, '--cpu', '2', '--memory', '2Gi', '--pods', '20', '--wait');
      await kubectl(consumer, 'create', 'namespace', 'shop');
      await world.mustIsthmus('offload', 'namespace', 'shop', '--strategy', 'Remote', ...target(consumer));
      const service = (namespace: string, app: string, type: string) => ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: `${app}-web`, namespace },
        spec: { type, selector: { app }, ports: [{ port: 80, targetPort: 8080 }] },
      });
      await apply(
        consumer,
        pod('shop', 'far', serve, { labels: { app: 'far' } }),
        service('shop', 'far', 'NodePort'),
        pod('home', 'near', serve, { labels: { app: 'near' } }),
        service('home', 'near', 'ClusterIP'),
      );
      for (const [namespace, name] of [
        ['shop', 'far'],
        ['home', 'near'],
      ] as const)
        await kubectl(consumer, '-n', namespace, 'wait', `pod/${name}`, '--for=condition=Ready', '--timeout=180s');
      const [far, near] = [await podIp(consumer, 'shop', 'far'), await podIp(consumer, 'home', 'near')];
      const real = await podIp(provider, `shop-${consumer}`, 'far');
      expect(far).toBe(view(real));

      // Pod to pod, each way; every pod of the consumer is in turn one of each interface and of each node.
      for (const from of ['near', 'one', 'two', 'three', 'four', 'away']) {
        const source = await seen(consumer, 'home', from, `${far}:8080`);
        const own = view(await podIp(consumer, 'home', from));
        expect([from, source === own]).toEqual([from, !expected[cni].hidden]);
      }
      expect(await seen(consumer, 'shop', 'far', `${view(near)}:8080`)).not.toBe('');
      // By Services of the consumer, each way.
      await seen(consumer, 'home', 'near', 'far-web.shop:80');
      await seen(consumer, 'shop', 'far', 'far-web:80');
      // By NodePort, from outside and from a pod, at every node of the consumer.
      const nodePort = await kubectl(
        consumer,
        ...['-n', 'shop', 'get', 'service', 'far-web', '-o', 'jsonpath={.spec.ports[0].nodePort}'],
      );
      for (const { ip } of world.cluster(consumer).nodes) {
        const curl = ['-sS', '-m', '5', `http://${ip}:${nodePort}/remote`];
        await eventually(
          `node port ${ip}:${nodePort}`,
          async () => /^\d/.test((await must('curl', curl)).stdout),
          patience,
        );
      }
      await kubectl(consumer, 'delete', 'namespace', 'shop', '--timeout=120s');
      await kubectl(consumer, '-n', 'home', 'delete', 'pod/near', 'service/near-web', '--timeout=120s');

      const { code, rows, missing } = await networkTest(world, [consumer, provider], '--node-port');
      expect(rows.filter(({ ok }) => !ok)).toEqual([]);
      expect([code, missing]).toEqual([0, []]);
      expect(new Set(rows.map(({ what }) => what))).toEqual(
        new Set(['pod-to-pod', 'pod-to-service', 'node-to-pod', 'pod-to-nodeport', 'outside-to-nodeport']),
      );

      await world.mustIsthmus('unpeer', consumer, provider, '--wait');
      await eventually(
        'the virtual node to be gone',
        async () => !(await kubectl(consumer, 'get', 'nodes', '-o', 'name')).includes(`node/${provider}\n`),
        patience,
      );
    },
  );
});
