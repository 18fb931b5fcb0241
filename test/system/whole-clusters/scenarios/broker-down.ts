/** The broker dies and comes back: a peering that stands does not notice. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ObjectMeta } from '#shared/domain/kube-object.ts';
import type { Peering } from '#shared/schema/api/resources.ts';
import { eventually } from '#test/harness/eventually.ts';
import { waitUntilStable } from '#test/harness/wait-until-stable.ts';
import { everything, marksOf } from '../inventory.ts';
import { clusterNames, consumer, isRunning, patience, provider, reported, type Stage } from '../stage.ts';
import { talkTo } from '../streams.ts';
import { container, pod } from '../workloads.ts';

const namespace = 'abroad';
/** These tell of what goes on, so they change while nothing of the peering does. */
const lively =
  /^(nodes|pods|leases\..*|brokerlinks\..*|shadowpods\..*|endpoints|connections\..*|quotas\..*|endpointslices\..*) /;

/** Kubernetes writes the health of their pods into their status, so a failed probe changes them. */
const counted = /^(deployments|replicasets|daemonsets)\.apps /;
const versionOf = (what: string, { resourceVersion, generation }: ObjectMeta): string =>
  lively.test(what)
    ? ''
    : counted.test(what)
      ? ` generation ${generation}`
      : ` version ${resourceVersion} generation ${generation}`;

/** Every object of ours: which incarnation it is and, unless it lives, which version. */
async function standing(on: Stage): Promise<Map<string, string>> {
  const lines = new Map<string, string>();
  for (const cluster of clusterNames) {
    for (const { resource, object } of await everything(on.api(cluster))) {
      const { uid, namespace: within = '', name } = object.metadata;
      if (marksOf(object).length === 0 && !/liqo\.io|isthmus\.dev/.test(resource)) continue;
      const what = `${resource} ${within}/${name}`;
      lines.set(`${cluster} ${what}`, `uid ${uid}${versionOf(what, object.metadata)}`);
    }
  }
  return lines;
}

const restingState = (on: Stage): Promise<Map<string, string>> =>
  waitUntilStable(
    'both clusters',
    () => standing(on),
    patience,
    (lines) => JSON.stringify([...lines]),
  );

export function brokerDown(on: () => Stage): void {
  describe('without its broker, a peering', () => {
    let before: Map<string, string>;
    let peering: Peering | undefined;
    beforeAll(async () => {
      await on().podThat(consumer, [namespace, 'ready'], 'runs', isRunning);
      peering = await on().peering();
      before = await restingState(on());
      await on().world.broker.stop('SIGKILL');
    });
    afterAll(async () => await on().world.broker.start());

    test('is told of clearly by the command line', async () => {
      const ended = await on().world.isthmus('get', 'peerings');
      expect(ended.stderr).toMatch(/broker.*(cannot be reached|does not answer|unreachable|refused)/);
      expect(ended.code, reported(ended)).toBe(7);
    });

    test('still lets new pods run next door, and shows their status', async () => {
      await on().apply(consumer, pod(namespace, 'brokerless', [container(['print', '-interval', '200ms', 'alone'])]));
      const { spec } = await on().podThat(consumer, [namespace, 'brokerless'], 'runs', isRunning);
      expect(spec?.nodeName).toBe(provider);
      await on().podThat(provider, [namespace, 'brokerless'], 'runs', isRunning);
    });

    test('still gives logs and commands', async () => {
      const logs = talkTo(on().kubectlLine(consumer, '-n', namespace, 'logs', '-f', 'brokerless'));
      await logs.hear(/alone 3\n/);
      await logs.end({ kill: true });
      const echoed = await on().kubectl(consumer, ['-n', namespace, 'exec', '-i', 'ready', '--', 'cat'], 'still here');
      expect(echoed.stdout, reported(echoed)).toBe('still here');
    });

    test('still ends pods', async () => {
      const deleted = await on().kubectl(consumer, ['-n', namespace, 'delete', 'pod', 'brokerless']);
      expect(deleted.code, reported(deleted)).toBe(0);
      await eventually('its twin is gone', async () => !(await on().pod(provider, namespace, 'brokerless')), patience);
    });

    test('is found as it was when the broker is back: agents reconnect and nothing is done again', async () => {
      const startedAt = new Date().toISOString();
      await on().world.broker.start();
      await eventually(
        'both agents are heard at the broker again',
        async () => {
          const shown = JSON.parse(await on().world.mustIsthmus('get', 'clusters', '-o', 'json'));
          const heard = (shown.items ?? shown).map((one: { lastSeenAt: string }) => one.lastSeenAt > startedAt);
          return heard.length >= clusterNames.length && !heard.includes(false);
        },
        patience,
      );
      const after = await restingState(on());
      const changed = [...before].filter(([what, was]) => after.get(what) !== was);
      const reported = [
        ...changed.map(([what, was]) => `${what}: ${was} -> ${after.get(what)}`),
        ...[...after.keys()].filter((what) => !before.has(what)).map((what) => `${what}: new`),
      ];
      if (reported.length > 0) throw new Error(`not as it was before the broker died:\n${reported.join('\n')}`);
      expect(await on().peering()).toMatchObject({ id: peering?.id, phase: 'Ready', phaseSince: peering?.phaseSince });
    });
  });
}
