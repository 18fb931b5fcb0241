/** The pages of examples/ on a playground of three clusters, every command as it stands; then what else offloaded pods can rely on there. */
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openPlayground, type Playground } from '#scripts/playground/playground.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { life } from './scenarios/pod-lifecycle.ts';
import { openTutorial } from './tutorial.ts';

const place = { root: repositoryRoot, dir: process.env.ISTHMUS_BED ?? path.join(repositoryRoot, '.build', 'examples') };
/** `ISTHMUS_KEEP_CLUSTERS=1` leaves everything running, and the next run starts from it. */
const keep = process.env.ISTHMUS_KEEP_CLUSTERS === '1';
vi.setConfig({ testTimeout: 600_000, hookTimeout: 180_000 });
let playground: Playground | undefined;
const envFile = (): string => {
  if (playground === undefined) throw new Error('the playground did not open');
  return playground.envFile;
};

beforeAll(async () => {
  if (!keep) await removeProductClusters(place);
  playground = await openPlayground({ ...place, brokerPort: 7661 });
}, 900_000);
afterAll(async () => {
  if (!keep) await removeProductClusters(place);
}, 180_000);

/** Headings that the tests of a page follow, in its order; the peerings are revoked at the end of them all. */
function page(name: string, steps: Readonly<Record<string, (printed: string) => void>>): void {
  const tutorial = openTutorial(name, envFile);
  describe(`examples/${name}`, () => {
    test('is followed to its end', () => {
      expect(Object.keys(steps)).toEqual(tutorial.headings.filter((heading) => !heading.startsWith('Revoke')));
    });
    for (const [heading, check] of Object.entries(steps))
      test(heading, async () => {
        check(await tutorial.follow(heading));
      });
  });
}

const lines = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
const goesWell = (): void => undefined;

page('quick-start', {
  'Peer the clusters': (printed) => {
    expect(printed).toMatch(/^milan +Ready +agent/m);
    expect(printed).toMatch(/^rome-1 +Ready/m);
    expect(printed).toMatch(/rome.*milan.*Ready/);
  },
  'Start a hello world application': (printed) => {
    expect(printed).toMatch(/^hello-local +1\/1 +Running .* rome-1 /m);
    expect(printed).toMatch(/^hello-remote +1\/1 +Running .* milan /m);
  },
  'Check the pod connectivity': (printed) => {
    const [, local, remote] = /Local Pod IP: (\S+) - Remote Pod IP: (\S+)/.exec(printed) ?? [];
    expect(local).not.toBe(remote);
    expect(printed).toMatch(/^hello-local\nhello-remote\n/m);
  },
  'Expose the pods through a Service': (printed) => {
    expect(printed).toMatch(/^Endpoints: +[\d.]+:8080,[\d.]+:8080$/m);
  },
  'Check the Service connectivity': (printed) => {
    // Sixteen answers asked for at each side; both pods are among them, and no other.
    expect(lines(printed, /^ +\d+ hello-local$/gm)).toBe(2);
    expect(lines(printed, /^ +\d+ hello-remote$/gm)).toBe(2);
    const counted = [...printed.matchAll(/^ +(\d+) hello-/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
    expect(counted).toBe(32);
  },
  'Play with a shop of several services': (printed) => {
    expect(lines(printed, /^\S+ +1\/1 +Running/gm)).toBe(13);
    expect(printed).toMatch(/^frontend-\S+ .* rome-1 /m);
    expect(lines(printed, /^(checkout|cart|productcatalog|email|ad)-\S+ .* milan /gm)).toBe(5);
  },
  'Access the shop': (printed) => {
    expect(printed).toMatch(/^frontend on rome-1\n {2}productcatalog on milan-1\n/m);
    expect(printed).toMatch(/^ {2}checkout on milan-1\n {4}cart on milan-1\n {6}store on (rome|milan)-1\n/m);
    expect(printed).toMatch(/^ {4}email on milan-1$/m);
  },
  'Tear down': goesWell,
});

page('service-offloading', {
  'Peer the clusters': goesWell,
  'Offload a Service': (printed) => {
    expect(printed).toMatch(/^flights-service +ClusterIP +\S+ +<none> +7999\/TCP/m);
    expect(printed).toContain('No resources found in demo namespace');
  },
  'Consume the Service': (printed) => {
    expect(lines(printed, /^\[\{"flight": "AZ610", "from": "FCO", "to": "JFK"\}\]$/gm)).toBe(2);
  },
  'Tear down': goesWell,
});

page('mariadb-galera', {
  'Peer the clusters': goesWell,
  'Install the database': (printed) => {
    expect(lines(printed, /^db-\d +1\/1 +Running .* rome-1 /gm)).toBe(2);
    expect(lines(printed, /^db-\d +1\/1 +Running .* milan /gm)).toBe(1);
    expect(lines(printed, /^start: this volume: empty$/gm)).toBe(3);
    expect(printed).toMatch(/^start: begin db-0$/m);
  },
  'Write and read': (printed) => {
    expect(printed).toContain('entry\nwritten in rome\nwritten in milan\n');
  },
  'Drain a cluster': (printed) => {
    expect(printed).toMatch(/^wsrep_cluster_size\t2$/m);
    expect(printed).toMatch(/^db-\d +0\/1 +Pending .* <none> /m);
    expect(printed).toMatch(/^start: this volume: at \S+ \d+$/m);
    expect(printed).toContain('entry\nmilan is drained\n');
  },
  'Lose a replica and its volume': (printed) => {
    expect(printed).toMatch(/^start: this volume: empty$/m);
    expect(printed).toMatch(/^start: join db-\d$/m);
    expect(printed).toContain('COUNT(*)\n3\n');
  },
  'Cut the provider off': (printed) => {
    expect(printed).toMatch(/ERROR 1047 /);
    expect(printed).toContain('entry\nmilan is cut off\n');
  },
  'Move a replica': (printed) => {
    const [there = '', back = ''] = printed.split(/^NAME +READY.*$/m).slice(1);
    expect([there, back].map((shown) => lines(shown, /^db-\d +1\/1 +Running .* milan /gm))).toEqual([2, 1]);
  },
  'Take everything down': (printed) => {
    expect(lines(printed, /^pvc-\S+ +rome +bank\/data-db-\d +512Mi +loop +Kept /gm)).toBe(1);
  },
  'Go on without the provider': (printed) => {
    expect(printed).toMatch(/^start: wait for db-\d$/m);
    expect(lines(printed, /^db-\d +0\/1 +Pending .* <none> /gm)).toBe(1);
  },
  'Adopt the data again': (printed) => {
    // Not copied from another one: it was there.
    expect(printed).toMatch(/^start: this volume: at \S+ \d+$/m);
    expect(lines(printed, /^db-\d +1\/1 +Running .* milan /gm)).toBe(1);
    expect(printed).toContain(
      'entry\nwritten in rome\nwritten in milan\nmilan is drained\nmilan is cut off\nmoved to milan\nrome alone\n',
    );
  },
  'Tear down': goesWell,
});

page('postgresql', {
  'Peer the clusters': goesWell,
  'Install the database': (printed) => {
    expect(printed).toMatch(/^pg-0 +1\/1 +Running .* rome-1 /m);
    expect(printed).toMatch(/^pg-1 +1\/1 +Running .* milan /m);
    expect(printed).toMatch(/^start: create$[\s\S]*^start: copy$/m);
  },
  'Write here, read there': (printed) => {
    expect(printed).toMatch(/^ lamp +\| t$/m);
  },
  'Lose the primary and its volume': (printed) => {
    expect(printed).toMatch(/^start: copy$/m);
    expect(printed).toMatch(/^ chair +\| t$/m);
  },
  'Cut the provider off': (printed) => {
    expect(printed).toMatch(/^start: follow$/m);
    expect(printed).toMatch(/^pg_rewind: rewinding /m);
    expect(printed).toMatch(/^ table +\| t$/m);
  },
  'Tear down': goesWell,
});

page('offloading-with-policies', {
  'Peer the clusters': (printed) => {
    expect(printed).toMatch(/^milan +Ready .* center$/m);
    expect(printed).toMatch(/^naples +Ready .* south$/m);
  },
  'Tune namespace offloading': (printed) => {
    expect(printed).toMatch(/offloadingPhase: Ready\n/);
    expect(printed).toMatch(/reason: ClusterNotSelected[\s\S]*reason: ClusterSelected[\s\S]*reason: NamespaceCreated/);
    expect(printed).toMatch(/^demo +Active/m);
    expect(printed).toContain('namespaces "demo" not found');
  },
  'Deploy applications': (printed) => {
    expect(printed).toMatch(/^app-south-\S+ +1\/1 +Running .* naples /m);
    expect(printed).toMatch(/^app-center-\S+ +0\/1 +Pending .* <none> /m);
    expect(printed).toMatch(/^app-center-\S+ +1\/1 +Running .* (rome-1|naples) /m);
    expect(printed).toMatch(/affinity/);
  },
  'Tear down': goesWell,
});

page('replicated-deployments', {
  'Peer the clusters': (printed) => {
    expect(lines(printed, /^(milan|naples) +Ready .* destination$/gm)).toBe(2);
  },
  'Tune namespace offloading': (printed) => {
    expect(lines(printed, /^demo +Active/gm)).toBe(2);
  },
  'Deploy applications': (printed) => {
    for (const node of ['milan', 'naples'])
      expect(lines(printed, new RegExp(`^demo-app-\\S+ +1/1 +Running .* ${node} `, 'gm'))).toBe(1);
    expect(lines(printed, /^demo-app-\S+ +1\/1 +Running/gm)).toBe(4);
  },
  'Tear down': goesWell,
});

life(() => {
  if (playground === undefined) throw new Error('the playground did not open');
  return playground.world;
});

describe('revoking the peerings', () => {
  const tutorial = openTutorial('offloading-with-policies', envFile);
  test('leaves the cluster with its own node', async () => {
    await tutorial.follow('Revoke the peerings');
    const nodes = await playground?.world.cluster('rome').kubectl('get', 'nodes', '-o', 'name');
    expect(nodes?.trim()).toBe('node/rome-1');
  });
});
