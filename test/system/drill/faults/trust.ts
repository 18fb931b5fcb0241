/** Faults of what clusters are told of each other, of the broker's trust, and of nodes. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isthmus } from '#cli/captured-io.ts';
import { killAll, runningComponents } from '#test/testbed/processes.ts';
import { slotOf } from '#test/testbed/slots.ts';
import { up } from '#test/testbed/testbed.ts';
import { clusterNames } from '../../whole-clusters/stage.ts';
import { changed, type Fault, must } from '../fault.ts';

/** Ends the kubelet of the provider's node, which then starts with `change` in its configuration. */
async function kubeletWith(
  { stage }: Parameters<Fault['inject']>[0],
  change: (config: Record<string, unknown>) => Record<string, unknown>,
): Promise<() => Promise<void>> {
  const { dir } = stage.world.bed;
  const slot = slotOf(dir) ?? -1;
  const node = stage.world.cluster('milan').nodes[0]?.name ?? '';
  const file = path.join(stage.world.cluster('milan').dir, 'nodes', node, 'kubelet.yaml');
  const before = readFileSync(file, 'utf8');
  const startWith = async (text: string): Promise<void> => {
    writeFileSync(file, text);
    await killAll(() => [runningComponents(slot).get(`${node}/kubelet`) ?? []].flat());
    await up({ dir, clusters: clusterNames.map((name) => ({ name })) });
  };
  await startWith(JSON.stringify(change(JSON.parse(before) as Record<string, unknown>)));
  return () => startWith(before);
}

export const trustFaults: readonly Fault[] = [
  {
    what: 'ranges of the provider written wrongly in the consumer',
    says: 'ranges_refused',
    async inject(ground) {
      const what = ['configurations.networking.liqo.io', '-n', 'liqo-tenant-milan'];
      const { items } = JSON.parse(await must(ground, 'rome', 'get', ...what, '-o', 'json'));
      const [{ metadata, spec }] = items;
      const one = [`configuration.networking.liqo.io/${metadata.name}`, '-n', metadata.namespace];
      return changed(
        'rome',
        one,
        { spec: { remote: { cidr: { pod: ['10.77.0.0/16'] } } } },
        { spec: { remote: { cidr: { pod: spec.remote.cidr.pod } } } },
      )(ground);
    },
  },
  {
    what: 'disk of the node of the provider full, by the limit that its kubelet is given',
    says: 'nodes_full',
    async inject(ground) {
      // The disk is that of this machine. A soft limit with a long grace makes the kubelet report it, and evict nothing: images are nowhere else.
      const undo = await kubeletWith(ground, (config) => ({
        ...config,
        evictionSoft: { 'nodefs.available': '99%' },
        evictionSoftGracePeriod: { 'nodefs.available': '24h' },
      }));
      return { undo };
    },
  },
  {
    what: 'broker refuses the agents: their tenant is suspended',
    says: 'broker_refuses',
    async inject({ stage, dir }) {
      const { broker } = stage.world;
      const key = /operator key, shown this once: (\S+)/.exec(readFileSync(broker.logFile, 'utf8'))?.[1] ?? '';
      const { url, caPem } = JSON.parse(readFileSync(path.join(stage.world.stateDir, 'config.json'), 'utf8'));
      const ca = path.join(dir, 'broker-ca.pem');
      writeFileSync(ca, caPem);
      const operator = async (...args: string[]): Promise<void> => {
        const ran = await isthmus(args, { env: { ISTHMUS_CONFIG: path.join(dir, 'operator.json') } });
        if (ran.code !== 0) throw new Error(`isthmus ${args.join(' ')}: ${ran.err}`);
      };
      await operator('login', url, '--ca-file', ca, '--key', key);
      await operator('tenant', 'suspend', 'default', '--reason', 'drill');
      return { undo: () => operator('tenant', 'resume', 'default') };
    },
  },
  {
    what: 'a second kubelet reports as the virtual node',
    says: 'second_agent',
    async inject(ground) {
      // Played: a real one would take the pods of the node that it runs on for its own.
      const report = (status: object): Promise<string> =>
        must(
          ground,
          'rome',
          ...['patch', 'node', 'milan', '--subresource', 'status', '--field-manager', 'kubelet', '--type', 'merge'],
          ...['-p', JSON.stringify({ status })],
        );
      await report({
        nodeInfo: { kubeletVersion: 'v1.34.4', osImage: 'Debian GNU/Linux 13' },
        volumesInUse: ['kubernetes.io/csi/drill^1'],
      });
      return { undo: async () => void (await report({ volumesInUse: null })) };
    },
  },
  {
    what: 'node of the provider down: its kubelet does not answer',
    says: 'nodes_down',
    async inject({ stage }) {
      const slot = slotOf(stage.world.bed.dir);
      const node = stage.world.cluster('milan').nodes[0]?.name ?? '';
      const kubelet = runningComponents(slot ?? -1).get(`${node}/kubelet`);
      if (kubelet === undefined) throw new Error(`no kubelet of ${node} was found`);
      process.kill(kubelet, 'SIGSTOP');
      return { undo: async () => void process.kill(kubelet, 'SIGCONT') };
    },
  },
];
