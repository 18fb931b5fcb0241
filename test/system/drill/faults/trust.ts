/** Faults of what clusters are told of each other, of the broker's trust, and of nodes. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isthmus } from '#cli/captured-io.ts';
import { runningComponents } from '#test/testbed/processes.ts';
import { slotOf } from '#test/testbed/slots.ts';
import { changed, type Fault, must } from '../fault.ts';

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
