/** Volumes that go from one real cluster to the other and back, while a StatefulSet writes to them; on the clusters of the file that calls it. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  type PersistentVolume,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  secrets,
  services,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { type VolumeMove, volumeMoves } from '#shared/schema/isthmus/volume-move.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { Ended } from '#test/harness/program.ts';
import {
  type ClusterName,
  consumer,
  isReady,
  patience,
  provider,
  reported,
  type Stage,
} from '../whole-clusters/stage.ts';
import { claim, genuine, on, shop, shopThere, statefulSet, writer } from './storage-stage.ts';

const ledger = 'data-ledger-0';
const moving = { ...patience, withinMs: 120_000 };

const ledgerClaim = (): KubeObject => {
  const made = claim(ledger);
  return { ...made, metadata: { ...made.metadata, labels: { app: 'ledger' } } };
};

/**
 * Describes the scenarios; `stage` is asked when they run. `everyEnd`: also moves that are refused, and those that end by an abort, by an undo without a copy,
 * by a confirmation and by deletion, which `test/orderings/storage/moves.test.ts` has in memory.
 */
export function describeMoves(stage: () => Stage, { everyEnd }: { readonly everyEnd: boolean }): void {
  const isthmus = (...args: readonly string[]): Promise<Ended> =>
    stage().world.isthmus(...args, '--kubeconfig', stage().world.cluster(consumer).kubeconfigPath);
  const move = (name: string, ...args: readonly string[]): Promise<Ended> =>
    isthmus('move', 'volume', name, '-n', shop, ...args);
  const mustMove = async (name: string, ...args: readonly string[]): Promise<string> => {
    const ended = await move(name, ...args);
    if (ended.code !== 0) throw new Error(`${reported(ended)}\n${JSON.stringify(await moveOf(name))}`);
    return ended.stdout;
  };
  const moveOf = (name: string): Promise<VolumeMove | undefined> =>
    stage().api(consumer).get(volumeMoves, { namespace: shop, name });
  const inPod = (...command: readonly string[]): Promise<Ended> =>
    stage().kubectl(consumer, ['-n', shop, 'exec', 'ledger-0', '--', ...command]);
  const text = async (file: string): Promise<string> => {
    const ended = await inPod('cat', file);
    if (ended.code !== 0) throw new Error(reported(ended));
    return ended.stdout;
  };
  const runsOn = async (node: string): Promise<void> => {
    await stage().podThat(
      consumer,
      [shop, 'ledger-0'],
      `is ready on ${node}`,
      (found) => isReady(found) && found.spec?.nodeName === node,
    );
  };
  const volumeOf = async (name: string): Promise<PersistentVolume | undefined> => {
    const bound = await stage().api(consumer).get(persistentVolumeClaims, { namespace: shop, name });
    return stage()
      .api(consumer)
      .get(persistentVolumes, { name: bound?.spec?.volumeName ?? '' });
  };
  const handleOf = async (name: string): Promise<string | undefined> => (await volumeOf(name))?.spec?.csi?.volumeHandle;
  /** Claims that stand for volumes of this namespace, in both clusters. */
  const realClaims = async (): Promise<string[]> => {
    const here = await stage().api(consumer).list(persistentVolumeClaims, { namespace: storageNamespace });
    const there = await stage().api(provider).list(persistentVolumeClaims, { namespace: shopThere });
    const isOurs = ({ metadata }: KubeObject): boolean =>
      metadata.annotations?.['isthmus.dev/claim']?.startsWith(`${shop}/${ledger}`) ?? false;
    return [...here.filter(isOurs).map(() => consumer), ...there.filter(isOurs).map(() => provider)].sort();
  };
  const nothingLeftOfMovers = async (): Promise<void> => {
    const api = stage().api(consumer);
    const all = [
      ...(await api.list(pods, { namespace: shop })),
      ...(await api.list(secrets, { namespace: shop })),
      ...(await api.list(services, { namespace: shop })),
      ...(await api.list(persistentVolumeClaims, { namespace: shop })),
      ...(await stage().api(provider).list(pods, { namespace: shopThere })),
    ];
    expect(all.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('move-'))).toEqual([]);
  };

  /** Appends numbered lines as long as it runs; those that `kubectl exec` has reported as written. */
  const writeWhile = async <T>(
    work: () => Promise<T>,
  ): Promise<{ readonly result: T; readonly acknowledged: string[] }> => {
    const acknowledged: string[] = [];
    let over = false;
    const writing = (async () => {
      for (let i = 0; !over; i++) {
        const line = `line ${i} ${createHash('sha256').update(String(i)).digest('hex')}`;
        const { code } = await inPod('workload', 'write', '/data/lines', line);
        if (code === 0) acknowledged.push(line);
      }
    })();
    try {
      return { result: await work(), acknowledged };
    } finally {
      over = true;
      await writing;
    }
  };

  function describeOtherEnds(): void {
    test('stays where it is when its files find no room where they are to go, and its pod was never stopped', async () => {
      const uid = (await stage().pod(consumer, shop, 'ledger-0'))?.metadata.uid;
      // 8 MiB once, which are 40 MiB for rsync: it knows nothing of shared blocks. The volume has 32.
      const kibibyte = 'x'.repeat(1_023);
      const copies = [1, 2, 3, 4].map((i) => `/data/large-${i}`);
      for (const command of [
        ['write', '-times', '8192', '/data/large', kibibyte],
        ['reflink', '/data/large', ...copies],
      ]) {
        const ended = await inPod('workload', ...command);
        expect(ended.code, reported(ended)).toBe(0);
      }
      const ended = await move(ledger, '--to', provider);
      expect((await inPod('workload', 'remove', '/data/large', ...copies)).code).toBe(0);
      expect(ended.code, reported(ended)).not.toBe(0);
      expect(ended.stderr).toMatch(/given up, its volume is where it was: rsync .*No space left on device/);
      expect(await moveOf(ledger)).toMatchObject({ status: { phase: 'Aborted' } });
      expect((await stage().pod(consumer, shop, 'ledger-0'))?.metadata.uid).toBe(uid);
      expect(await text('/data/after')).toBe('written after the move\n');
      await nothingLeftOfMovers();
      expect(await realClaims()).toEqual([consumer]);
      expect(await stage().api(provider).list(retainedVolumes)).toEqual([]);
    });

    test('comes back as it was left when that is ordered', async () => {
      await mustMove(ledger, '--to', provider);
      await runsOn(provider);
      expect((await inPod('workload', 'write', '/data/dropped', 'not wanted')).code).toBe(0);
      expect(await mustMove(ledger, 'undo', '--discard-new-writes')).toContain('is in this cluster again');
      await runsOn(genuine);
      expect((await inPod('cat', '/data/dropped')).code).not.toBe(0);
      expect(await text('/data/after')).toBe('written after the move\n');
      expect(await realClaims()).toEqual([consumer]);
    });

    test('is deleted where it was once the move is confirmed, and moves home again from there', async () => {
      await mustMove(ledger, '--to', provider);
      const taken = await move(ledger, '--to', 'local');
      expect(taken.stderr).toMatch(/is being moved to milan: Undoable/);
      expect(await mustMove(ledger, 'confirm')).toMatch(/the one in this cluster is deleted/);
      expect(await realClaims()).toEqual([provider]);
      await runsOn(provider);
      expect(await mustMove(ledger, '--to', 'local', '--undo-window', '20s')).toMatch(/is in this cluster: \d+ files/);
      await eventually(
        'the undo window to end',
        async () => (await moveOf(ledger))?.status?.phase === 'Confirmed',
        moving,
      );
      await runsOn(genuine);
      expect(await text('/data/after')).toBe('written after the move\n');
      expect(await realClaims()).toEqual([consumer]);
      expect(await stage().api(provider).list(retainedVolumes)).toEqual([]);
    });

    test('leaves a RetainedVolume where it was when the VolumeMove is deleted while it can be undone, at either end', async () => {
      const forget = async (): Promise<void> => {
        const ended = await stage().kubectl(consumer, ['-n', shop, 'delete', 'volumemove', ledger, '--wait']);
        expect(ended.code, reported(ended)).toBe(0);
      };
      const tool = async (at: ClusterName, ...args: readonly string[]): Promise<string> => {
        const { kubeconfigPath } = stage().world.cluster(at);
        return stage().world.mustIsthmus('volume', ...args, '--kubeconfig', kubeconfigPath);
      };
      for (const [from, to] of [
        [consumer, provider],
        [provider, consumer],
      ] as const) {
        await mustMove(ledger, '--to', to === consumer ? 'local' : to);
        await forget();
        const [record, ...more] = await stage().api(from).list(retainedVolumes);
        expect(more).toEqual([]);
        expect(record?.spec).toMatchObject({ consumer, claim: { namespace: shop, name: ledger }, size: '32Mi' });
        expect(await realClaims()).toEqual([to]);
        await runsOn(to === consumer ? genuine : provider);
        const name = record?.metadata.name ?? '';
        if (from === consumer) {
          const bare = await stage().world.isthmus(
            ...['volume', 'adopt', name, '--kubeconfig', stage().world.cluster(from).kubeconfigPath],
          );
          expect(bare.stderr).toMatch(/--namespace names where a claim is to be made for it/);
          await tool(from, 'adopt', name, '--namespace', shop, '--claim', 'as-it-was');
          await stage().apply(from, writer('looks', 'as-it-was', 'looked at', on(genuine)));
          await stage().podThat(from, [shop, 'looks'], 'is ready', isReady);
          const seen = await stage().kubectl(from, ['-n', shop, 'exec', 'looks', '--', 'cat', '/data/after']);
          expect(seen.stdout).toBe('written after the move\n');
          await stage().kubectl(from, ['-n', shop, 'delete', 'pod', 'looks', '--wait']);
          await stage().kubectl(from, ['-n', shop, 'delete', 'pvc', 'as-it-was', '--wait']);
        } else await tool(from, 'discard', name);
        expect(await stage().api(from).list(retainedVolumes)).toEqual([]);
      }
    });

    test('stays where it is when the move is aborted, and its pod was never stopped', async () => {
      const uid = (await stage().pod(consumer, shop, 'ledger-0'))?.metadata.uid;
      await mustMove(ledger, '--to', provider, '--detach', '--image', 'isthmus.test/no-such-image:1');
      expect(await mustMove(ledger, 'abort')).toContain('its volume is where it was: it was ordered');
      expect((await stage().pod(consumer, shop, 'ledger-0'))?.metadata.uid).toBe(uid);
      await nothingLeftOfMovers();
      expect(await realClaims()).toEqual([consumer]);
    });
  }

  function describeRefusals(): void {
    describe('a move that cannot be', () => {
      const refused = async (name: string, to: string): Promise<string> => {
        const ended = await move(name, '--to', to);
        expect(ended.code, reported(ended)).toBe(6);
        expect(await moveOf(name)).toBeUndefined();
        return ended.stderr;
      };

      test('is refused by name before anything changes', async () => {
        await stage().apply(
          consumer,
          claim('lone'),
          claim('foreign', {}, { storageClassName: 'loop' }),
          writer('bare', 'lone', 'alone', on(genuine)),
          writer('own', 'foreign', 'of another class', on(genuine)),
        );
        await Promise.all(['bare', 'own'].map((name) => stage().podThat(consumer, [shop, name], 'is ready', isReady)));
        expect(await refused('nothing', provider)).toMatch(
          /claim nothing does not exist in namespace shop: accepted is one of .*lone/,
        );
        expect(await refused('lone', provider)).toMatch(
          /claim lone: pod bare uses it and nothing would make that pod again/,
        );
        expect(await refused('foreign', provider)).toMatch(
          /claim foreign is of StorageClass loop, whose volumes Isthmus does not make/,
        );
        expect(await refused(ledger, 'local')).toMatch(/is in this cluster already/);
        expect(await refused(ledger, 'genoa')).toMatch(
          /cluster genoa is no provider of this cluster: accepted is one of local, milan/,
        );
        for (const name of ['bare', 'own'])
          await stage().kubectl(consumer, ['-n', shop, 'delete', 'pod', name, '--wait']);
        await stage().kubectl(consumer, ['-n', shop, 'delete', 'pvc', 'lone', 'foreign', '--wait']);
      });
    });
  }

  describe('the volume of a claim that is moved', () => {
    test('goes to the provider while its StatefulSet writes, and has every line that was acknowledged', async () => {
      await stage().apply(consumer, ledgerClaim(), writer('first', ledger, 'written before all moves', on(genuine)));
      await stage().podThat(consumer, [shop, 'first'], 'is ready', isReady);
      const piece = 'x'.repeat(100_000);
      for (let i = 0; i < 5; i++) {
        const ended = await stage().kubectl(consumer, [
          '-n',
          shop,
          'exec',
          'first',
          '--',
          'workload',
          'write',
          `/data/parts/${i}`,
          `${i}${piece}`,
        ]);
        expect(ended.code, reported(ended)).toBe(0);
      }
      await stage().kubectl(consumer, ['-n', shop, 'delete', 'pod', 'first', '--wait']);
      await stage().apply(consumer, statefulSet('ledger', { replicas: 1, file: '/data/starts' }));
      await runsOn(genuine);
      const before = await stage().api(consumer).get(persistentVolumeClaims, { namespace: shop, name: ledger });
      const { result, acknowledged } = await writeWhile(() => mustMove(ledger, '--to', provider));
      expect(result).toMatch(/is in cluster milan: \d+ files, \S+Ki, with equal checksums; pods waited \d+ s/);
      await runsOn(provider);
      expect(await handleOf(ledger)).toBe(`${provider}/${shopThere}/${ledger}`);
      expect(acknowledged.length).toBeGreaterThan(0);
      const lines = (await text('/data/lines')).split('\n');
      expect(acknowledged.filter((line) => !lines.includes(line))).toEqual([]);
      expect(await text('/data/notes')).toBe('written before all moves\n');
      expect(await text('/data/parts/4')).toBe(`4${piece}\n`);
      const after = await stage().api(consumer).get(persistentVolumeClaims, { namespace: shop, name: ledger });
      expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
      expect(after?.metadata.labels).toEqual(before?.metadata.labels);
      await nothingLeftOfMovers();
      expect(await realClaims()).toEqual([provider, consumer]);
    });

    test('comes back with what was written since, and nothing stays at the provider', async () => {
      expect((await inPod('workload', 'write', '/data/after', 'written after the move')).code).toBe(0);
      expect(await mustMove(ledger, 'status')).toMatch(/until .* the one that it had is kept in this cluster/);
      expect(await mustMove(ledger, 'undo', '--copy-back')).toMatch(/is in this cluster again: \d+ files/);
      await runsOn(genuine);
      expect(await text('/data/after')).toBe('written after the move\n');
      expect(await text('/data/notes')).toBe('written before all moves\n');
      await nothingLeftOfMovers();
      expect(await realClaims()).toEqual([consumer]);
      expect(await stage().api(provider).list(retainedVolumes)).toEqual([]);
    });

    if (everyEnd) describeOtherEnds();
  });

  if (everyEnd) describeRefusals();

  describe('a volume that was moved', () => {
    test('leaves nothing behind', async () => {
      await stage().kubectl(consumer, ['-n', shop, 'delete', 'statefulset', 'ledger', '--wait']);
      await stage().kubectl(consumer, ['-n', shop, 'delete', 'volumemoves', '--all', '--wait']);
      await stage().kubectl(consumer, ['-n', shop, 'wait', '--for=delete', 'pod/ledger-0']);
      await stage().kubectl(consumer, ['-n', shop, 'delete', 'pvc', ledger, '--wait']);
      await eventually('no claim is left for it', async () => (await realClaims()).length === 0, patience);
    });
  });
}
