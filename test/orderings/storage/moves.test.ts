import { describe, expect, test } from 'vitest';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { disturbed, endOf } from './disturbed.ts';
import { runScript, type Script, type Turn } from './scripted.ts';
import type { StorageWorld } from './world.ts';

const phaseOf = (script: Script): string | undefined => endOf(script).phase;
const isAt = (script: Script): string | undefined => endOf(script).at;
const recordsAt = ({ world }: Script): string[] =>
  world.clusters.flatMap(({ name, store }) => store.all(retainedVolumes).map(() => name));

const scripts: readonly {
  readonly what: string;
  readonly turns: readonly Turn[];
  readonly phase: string | undefined;
  readonly at: string;
  readonly records: readonly string[];
}[] = [
  { what: 'a move home', turns: [['local']], phase: 'Undoable', at: 'rome', records: [] },
  { what: 'a move to another provider', turns: [['genoa']], phase: 'Undoable', at: 'genoa', records: [] },
  {
    what: 'an undo with a copy',
    turns: [['local'], ['order', 'undo-copy-back']],
    phase: 'Undone',
    at: 'milan',
    records: [],
  },
  {
    what: 'an undo without one',
    turns: [['genoa'], ['order', 'undo-discard-new-writes']],
    phase: 'Undone',
    at: 'milan',
    records: [],
  },
  { what: 'a confirmed move', turns: [['local'], ['order', 'confirm']], phase: 'Confirmed', at: 'rome', records: [] },
  {
    what: 'a move that is deleted while it can be undone',
    turns: [['local'], ['delete']],
    phase: undefined,
    at: 'rome',
    records: ['milan'],
  },
  {
    what: 'one of a volume of this cluster',
    turns: [['local'], ['order', 'confirm'], ['delete'], ['genoa'], ['delete']],
    phase: undefined,
    at: 'genoa',
    records: ['rome'],
  },
];

describe('the end is the same, and nothing is lost or left over, whether agents live or die before and after every write, of', () => {
  test.each(scripts)('$what', async ({ turns, phase, at, records }) => {
    for (const dies of [false, true]) {
      const script = await runScript(turns, dies);
      expect(script.faults).toEqual([]);
      expect([phaseOf(script), isAt(script), recordsAt(script)]).toEqual([phase, at, records]);
      if (!dies) continue;
      expect(script.deaths).toBeGreaterThan(40);
      // Every kind of write of the consumer's agent was once lost and once carried out without an answer.
      expect(script.survived).toEqual(
        expect.arrayContaining(['rome VolumeMove update', 'rome Pod create', 'rome PersistentVolumeClaim delete']),
      );
    }
  });
});

describe('a policy Retain that an administrator gives the volume while it is copied', () => {
  const retainWhileCopied = (world: StorageWorld): void => {
    const app = world.apps.get('a');
    if (app && world.move(app)?.status?.phase === 'Copying') world.retain(app);
  };
  const policies = ({ world }: Script): (string | undefined)[] =>
    [...world.retained].map((name) => world.home.volume(name)?.spec?.persistentVolumeReclaimPolicy);

  test('is kept by a move that is confirmed: its volume stays', async () => {
    const script = await runScript([['genoa'], ['order', 'confirm']], false, retainWhileCopied);
    expect(script.faults).toEqual([]);
    expect([phaseOf(script), isAt(script), policies(script)]).toEqual(['Confirmed', 'genoa', ['Retain']]);
  });

  test('is kept by a move that is aborted', async () => {
    const script = await runScript([['genoa']], false, (world) => {
      retainWhileCopied(world);
      world.breakOff();
    });
    expect(script.faults).toEqual([]);
    expect([phaseOf(script), isAt(script), policies(script)]).toEqual(['Aborted', 'milan', ['Retain']]);
  });
});

describe('nothing is lost or left over, and each volume has its policy, after', () => {
  test.each(disturbed)('$what', async ({ turns, disturbance, end }) => {
    const script = await runScript(turns, false, disturbance());
    expect(script.faults).toEqual([]);
    expect(endOf(script)).toEqual(end);
  });
});

test('B130 a move whose copy fails again and again ends, and the application goes on with all its lines where it was', async () => {
  const script = await runScript([['genoa']], false, (world) => world.breakOff());
  expect(script.faults).toEqual([]);
  expect([phaseOf(script), isAt(script), recordsAt(script)]).toEqual(['Aborted', 'milan', []]);
});
