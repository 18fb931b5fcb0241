/** Pods that run next door, as kubectl shows them at home: status, streams, restarts and ends. */
import { request } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { pods } from '#shared/domain/core-kinds.ts';
import { eventually } from '#test/harness/eventually.ts';
import { consumer, isReady, isRunning, patience, provider, reported, type Stage } from '../stage.ts';
import { talkTo } from '../streams.ts';
import { container, pod } from '../workloads.ts';

/** Offloaded under its own name, all pods remote. */
const namespace = 'abroad';

const fetched = (port: string, path: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve(text));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });

export function remotePods(on: () => Stage): void {
  const here = (name: string) => [namespace, name] as const;
  const kubectlLine = (...args: string[]) => on().kubectlLine(consumer, '-n', namespace, ...args);

  describe('the status of a pod that runs at the provider', () => {
    beforeAll(async () => {
      const probe = (path: string) => ({ readinessProbe: { httpGet: { path, port: 8080 }, periodSeconds: 1 } });
      await on().apply(
        consumer,
        pod(namespace, 'initialised', [container(['pause'])], {
          initContainers: [container(['echo', 'first'], { name: 'first' })],
        }),
        pod(namespace, 'restless', [container(['exit', '3', '--after', '500ms'])]),
        pod(namespace, 'finished', [container(['echo', 'done'])], { restartPolicy: 'Never' }),
        pod(namespace, 'ready', [container(['serve', '-text', 'hello from next door'], probe('/ready'))]),
        pod(namespace, 'unready', [container(['serve', '-ready-after', '1h'], probe('/ready'))]),
        pod(namespace, 'printer', [container(['print', '-interval', '200ms', 'line'])]),
        pod(namespace, 'parrot', [container(['cat'], { stdin: true })]),
      );
    });

    test('tells of init containers', async () => {
      const { status } = await on().podThat(consumer, here('initialised'), 'runs', isRunning);
      expect(status?.initContainerStatuses).toMatchObject([
        { name: 'first', state: { terminated: { exitCode: 0, reason: 'Completed' } } },
      ]);
      expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'Initialized', status: 'True' }));
    });

    test('counts the restarts of its containers and keeps how they ended', async () => {
      const { status } = await on().podThat(
        consumer,
        here('restless'),
        'was restarted',
        (found) => (found.status?.containerStatuses?.[0]?.restartCount ?? 0) >= 1,
      );
      expect(status?.containerStatuses?.[0]?.lastState?.terminated).toMatchObject({ exitCode: 3 });
    });

    test('says that it has finished', async () => {
      const { status } = await on().podThat(
        consumer,
        here('finished'),
        'succeeded',
        (found) => found.status?.phase === 'Succeeded',
      );
      expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({ exitCode: 0 });
    });

    test('follows its readiness probe', async () => {
      await on().podThat(consumer, here('ready'), 'is ready', isReady);
      const unready = await on().podThat(consumer, here('unready'), 'runs', isRunning);
      expect(isReady(unready)).toBe(false);
      expect(unready.status?.containerStatuses?.[0]?.ready).toBe(false);
      expect(unready.status?.conditions?.find(({ type }) => type === 'Ready')?.reason).toBe('ContainersNotReady');
    });
  });

  describe('through the API server of the consumer', () => {
    test('kubectl logs -f follows what a container prints', async () => {
      await on().podThat(consumer, here('printer'), 'runs', isRunning);
      const logs = talkTo(kubectlLine('logs', '-f', 'printer', '--tail=1'));
      const [, first] = await logs.hear(/line (\d+)\n/);
      await logs.hear(new RegExp(`line ${Number(first) + 3}\n`));
      await logs.end({ kill: true });
    });

    test('kubectl logs reads a finished container, and a missing one is named', async () => {
      const logs = await on().kubectl(consumer, ['-n', namespace, 'logs', 'finished']);
      expect(logs.stdout, reported(logs)).toBe('done\n');
      const previous = await on().kubectl(consumer, ['-n', namespace, 'logs', 'restless', '--previous', '--tail=1']);
      expect(previous.code, reported(previous)).toBe(0);
    });

    test('kubectl exec passes input, output and the exit code', async () => {
      await on().podThat(consumer, here('ready'), 'is ready', isReady);
      const words = 'there and back again\n'.repeat(2_000);
      const echoed = await on().kubectl(consumer, ['-n', namespace, 'exec', '-i', 'ready', '--', 'cat'], words);
      expect(echoed.stdout === words, reported({ ...echoed, stdout: `${echoed.stdout.length} characters` })).toBe(true);
      const failed = await on().kubectl(consumer, ['-n', namespace, 'exec', 'ready', '--', 'workload', 'exit', '7']);
      expect(failed.code, reported(failed)).toBe(7);
    });

    test('kubectl attach talks to a running container', async () => {
      await on().podThat(consumer, here('parrot'), 'runs', isRunning);
      const attached = talkTo(kubectlLine('attach', '-i', 'parrot'));
      attached.say('polly\n');
      await attached.hear(/polly\n/);
      await attached.end({ kill: true });
    });

    test('kubectl port-forward reaches a port of the pod', async () => {
      await on().podThat(consumer, here('ready'), 'is ready', isReady);
      const forward = talkTo(kubectlLine('port-forward', 'pod/ready', ':8080'));
      const [, port] = await forward.hear(/127\.0\.0\.1:(\d+) -> 8080/);
      expect(await fetched(port!, '/')).toBe('hello from next door\n');
      expect(await fetched(port!, '/healthz')).toBe('ok\n');
      await forward.end({ kill: true });
    });
  });

  describe('the end of a pod', () => {
    test('at the provider alone does not last: the pod is made again', async () => {
      const before = await on().podThat(consumer, here('any'), 'runs', isRunning);
      const twin = await on().pod(provider, namespace, 'any');
      await on().api(provider).delete(pods, { namespace, name: 'any' }, { gracePeriodSeconds: 0 });
      await on().podThat(
        provider,
        here('any'),
        'runs again as another',
        (found) => isRunning(found) && found.metadata.uid !== twin?.metadata.uid,
      );
      const after = await on().podThat(consumer, here('any'), 'runs', isRunning);
      expect(after.metadata.uid).toBe(before.metadata.uid);
      await on().podThat(
        consumer,
        here('any'),
        'counts that as a restart',
        (found) => (found.status?.containerStatuses?.[0]?.restartCount ?? 0) >= 1,
      );
    });

    test('at home is the end on both sides, with its grace period', async () => {
      await on().podThat(consumer, here('printer'), 'runs', isRunning);
      const deleted = await on().kubectl(consumer, ['-n', namespace, 'delete', 'pod', 'printer', 'parrot']);
      expect(deleted.code, reported(deleted)).toBe(0);
      for (const name of ['printer', 'parrot']) {
        const twin = await on().pod(provider, namespace, name);
        const states = twin?.status?.containerStatuses?.map(({ state }) => Object.keys(state ?? {})[0]) ?? [];
        expect(states.filter((state) => state === 'running')).toEqual([]);
        await eventually(
          `the twin of ${name} is gone`,
          async () => !(await on().pod(provider, namespace, name)),
          patience,
        );
      }
    });

    test('comes at once when it is forced', async () => {
      const main = [container(['pause'])];
      await on().apply(consumer, pod(namespace, 'short-lived', main));
      await on().podThat(consumer, here('short-lived'), 'runs', isRunning);
      await on().api(consumer).delete(pods, { namespace, name: 'short-lived' }, { gracePeriodSeconds: 0 });
      await eventually('its twin is gone', async () => !(await on().pod(provider, namespace, 'short-lived')), patience);
    });
  });

  describe('more than the provider granted', () => {
    test('keeps a pod waiting at home, with the resource named on the pod', async () => {
      const greedy = container(['pause'], { resources: { requests: { cpu: '3' } } });
      await on().apply(consumer, pod(namespace, 'greedy', [greedy]));
      await on().podThat(consumer, here('greedy'), 'is told what is missing', ({ status }) =>
        /Insufficient cpu/.test(status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? ''),
      );
    });

    test('is refused by the provider when the scheduler is passed by, and the pod says by what limit', async () => {
      const greedy = container(['pause'], { resources: { requests: { cpu: '3' }, limits: { cpu: '3' } } });
      await on().apply(consumer, pod(namespace, 'pushy', [greedy], { nodeName: provider }));
      await eventually(
        'the pod tells of the quota',
        async () => {
          const shown = await on().kubectl(consumer, ['-n', namespace, 'describe', 'pod', 'pushy']);
          if (/quota.*cpu|cpu.*quota/is.test(shown.stdout.slice(shown.stdout.indexOf('Status:')))) return true;
          throw new Error(shown.stdout);
        },
        patience,
      );
      expect(await on().pod(provider, namespace, 'pushy')).toBeUndefined();
      await on().kubectl(consumer, ['-n', namespace, 'delete', 'pod', 'pushy', 'greedy']);
    });
  });
}
