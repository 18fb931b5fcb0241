/** Moves during which something happens at one certain moment, which histories seldom draw. */
import { persistentVolumes } from '#shared/domain/core-kinds.ts';
import { storageAnnotation } from '#shared/domain/storage-keys.ts';
import type { App } from './played.ts';
import type { Turn } from './scripted.ts';
import type { StorageWorld } from './world.ts';

export interface Disturbed {
  readonly what: string;
  readonly turns: readonly Turn[];
  /** For one run: what happens in each of its rounds. */
  readonly disturbance: () => (world: StorageWorld) => void;
  /** In the end: the phase of the move, where the volume is, and how many disks each provider has. */
  readonly phase: string | undefined;
  readonly at: string;
  readonly disks: { readonly milan: number; readonly genoa: number };
}

const phaseNow = (world: StorageWorld): string | undefined => {
  const app = world.apps.get('a');
  return app && world.move(app)?.status?.phase;
};

/** The watch at the provider lags from the switch on. */
const unheard = () => (world: StorageWorld) => {
  const genoa = world.providers.get('genoa');
  if (genoa && phaseNow(world) === 'Switching') genoa.store.isUnheard = true;
};

/** The pod that copied does not end, because its cluster is cut off; it answers again when the VolumeMove is deleted. */
function longSwitch(): (world: StorageWorld) => void {
  let cutAtMs: number | undefined;
  return (world) => {
    const [app, genoa] = [world.apps.get('a'), world.providers.get('genoa')];
    if (!app || !genoa || phaseNow(world) !== 'Switching') return;
    if (cutAtMs === undefined) {
      cutAtMs = world.clock.now();
      genoa.store.isCut = true;
    } else if (genoa.store.isCut && world.clock.now() - cutAtMs > 15 * 60_000) {
      world.deleteMove(app);
      genoa.store.isCut = false;
    }
  };
}

/** The cluster to which an undo leads is cut off from the switch on. After half an hour the VolumeMove is deleted; the cluster answers when it has gone. */
function silentUndo(): (world: StorageWorld) => void {
  let cutAtMs: number | undefined;
  return (world) => {
    const [app, milan] = [world.apps.get('a'), world.providers.get('milan')];
    const { phase, way } = (app && world.move(app)?.status) ?? {};
    if (!app || !milan) return;
    if (cutAtMs === undefined && phase === 'Switching' && way === 'back') {
      cutAtMs = world.clock.now();
      milan.store.isCut = true;
    } else if (cutAtMs !== undefined && milan.store.isCut) {
      if (world.move(app) === undefined) milan.store.isCut = false;
      else if (world.clock.now() - cutAtMs > 30 * 60_000) world.deleteMove(app);
    }
  };
}

/** In the moment in which the switch has retained the volume of the claim, which is not deleted yet. */
const asSwitchBegins = (act: (world: StorageWorld, app: App) => void) => (): ((world: StorageWorld) => void) => {
  let isWatched = false;
  return (world) => {
    const { store } = world.home;
    const app = world.apps.get('a');
    if (isWatched || !app) return;
    isWatched = true;
    const before = store.onWrite;
    let isDone = false;
    store.onWrite = (old, now) => {
      before(old, now);
      const isRetained = now?.metadata.annotations?.[storageAnnotation.policyAfterMove] !== undefined;
      if (isDone || now?.kind !== persistentVolumes.kind || !isRetained) return;
      isDone = true;
      act(world, app);
    };
  };
};

const grows = asSwitchBegins((world, app) => world.resize(app, '2Gi'));

/** By a webhook whose cache lags; the pod writes before the claim is deleted. */
const latePod = asSwitchBegins((world, app) => {
  world.isBlind = true;
  world.restart(app);
  for (let round = 0; round < 3; round++) world.play(1);
});

export const disturbed: readonly Disturbed[] = [
  {
    what: 'an undo without a copy, when the watch at the provider has not shown the switch yet',
    turns: [['genoa'], ['order', 'undo-discard-new-writes']],
    disturbance: unheard,
    phase: 'Undone',
    at: 'milan',
    disks: { milan: 1, genoa: 0 },
  },
  {
    what: 'a VolumeMove that is deleted when its switch has waited a quarter of an hour for a pod to end',
    turns: [['genoa']],
    disturbance: longSwitch,
    phase: undefined,
    at: 'genoa',
    disks: { milan: 1, genoa: 1 },
  },
  {
    what: 'an undo to a cluster that is silent from the switch on, whose VolumeMove is deleted: what was left is a record',
    turns: [['genoa'], ['order', 'undo-discard-new-writes']],
    disturbance: silentUndo,
    phase: undefined,
    at: 'milan',
    disks: { milan: 1, genoa: 1 },
  },
  {
    what: 'a claim that grows when the switch has begun',
    turns: [['genoa']],
    disturbance: grows,
    phase: 'Aborted',
    at: 'milan',
    disks: { milan: 1, genoa: 0 },
  },
  {
    what: 'a pod that is admitted past the gate and writes when the switch has begun',
    turns: [['genoa']],
    disturbance: latePod,
    phase: 'Undoable',
    at: 'genoa',
    disks: { milan: 1, genoa: 1 },
  },
];
