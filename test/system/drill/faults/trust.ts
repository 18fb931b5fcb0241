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
    what: 'provider moved: its API server is at another port, and the old one is shut',
    says: 'provider_moved',
    async inject(ground) {
      const [node] = ground.stage.world.cluster('milan').nodes;
      const [rome] = ground.stage.world.cluster('rome').nodes;
      const nft = (...args: readonly string[]) => node?.exec('nft', args);
      const table = ['ip', 'isthmus_drill_moved'];
      await nft('add', 'table', ...table);
      await nft('add', 'chain', ...table, 'shut', '{ type filter hook prerouting priority -400; }');
      await nft('add', 'rule', ...table, 'shut', `ip saddr ${rome?.ip} tcp dport 6443 drop`);
      await nft('add', 'chain', ...table, 'moved', '{ type nat hook prerouting priority -110; }');
      await nft('add', 'rule', ...table, 'moved', 'tcp dport 7443 redirect to :6443');
      const agent = ['deployment', 'isthmus-agent', '-n', 'liqo'];
      const { spec } = JSON.parse(await must(ground, 'milan', 'get', ...agent, '-o', 'json'));
      const env: { name: string; value?: string }[] = spec.template.spec.containers[0].env;
      const at = env.findIndex(({ name }) => name === 'ISTHMUS_API_SERVER_URL');
      const setTo = (value: string | undefined) => [
        { op: 'replace', path: `/spec/template/spec/containers/0/env/${at}/value`, value },
      ];
      const { undo } = await changed(
        'milan',
        agent,
        setTo(env[at]?.value?.replace(':6443', ':7443')),
        setTo(env[at]?.value),
        'json',
      )(ground);
      return {
        async undo() {
          await undo();
          await nft('delete', 'table', ...table);
          await must(ground, 'milan', 'rollout', 'status', ...agent, '--timeout=120s');
        },
      };
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
