/** Moves during which something happens at one certain moment, which histories seldom draw. */
import { persistentVolumeClaims, persistentVolumes, pods } from '#shared/domain/core-kinds.ts';
import { type Pod, refOf } from '#shared/domain/kube-object.ts';
import { storageAnnotation } from '#shared/domain/storage-keys.ts';
import { shop } from './names.ts';
import type { App } from './played.ts';
import type { Script, Turn } from './scripted.ts';
import type { StorageWorld } from './world.ts';

/** The phase of the move, where the volume is, and how many disks each provider has. */
export interface End {
  readonly phase: string | undefined;
  readonly at: string | undefined;
  readonly disks: Readonly<Record<string, number>>;
}

export interface Disturbed {
  readonly what: string;
  readonly turns: readonly Turn[];
  /** For one run: what happens in each of its rounds. */
  readonly disturbance: () => (world: StorageWorld) => void;
  readonly end: End;
}

export function endOf({ world }: Pick<Script, 'world'>): End {
  const app = world.apps.get('a');
  const { csi } = world.home.volume(app && world.claim(app)?.spec?.volumeName)?.spec ?? {};
  const disks = [...world.providers].map(([name, provider]) => [name, provider.disks.size]);
  return {
    phase: app && world.move(app)?.status?.phase,
    at: csi?.volumeHandle.split(/[/-]/)[0],
    disks: Object.fromEntries(disks),
  };
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

/** Once, so long after the move became Undoable. */
const onceUndoable =
  (afterMs: number, act: (world: StorageWorld, app: App) => void) => (): ((world: StorageWorld) => void) => {
    let isDone = false;
    return (world) => {
      const app = world.apps.get('a');
      const { phase, since = '' } = (app && world.move(app)?.status) ?? {};
      if (isDone || !app || phase !== 'Undoable' || world.clock.now() - Date.parse(since) < afterMs) return;
      isDone = true;
      act(world, app);
    };
  };

/** Nothing would make it again, so nothing may be moved from under it. */
const barePod = onceUndoable(0, (world, app) => {
  world.home.store.create({
    apiVersion: 'v1',
    kind: pods.kind,
    metadata: { namespace: shop, name: 'bare', labels: {} },
    spec: {
      containers: [{ name: 'bare', image: 'app:1' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: app.claim } }],
    },
  } as never);
});

/** Of the provider that the move went to. */
const realClaims = (world: StorageWorld) => {
  const genoa = world.providers.get('genoa');
  return genoa === undefined ? [] : genoa.store.all(persistentVolumeClaims).map((claim) => ({ genoa, claim }));
};

/** By an administrator of the provider: what is in it becomes a RetainedVolume there. */
const realClaimGone = onceUndoable(300_000, (world, app) => {
  for (const { genoa, claim } of realClaims(world)) genoa.store.delete(persistentVolumeClaims, refOf(claim));
  // Until then its pod holds the claim.
  world.restart(app);
});

/** Its PersistentVolume is another claim's now. */
const realClaimLost = onceUndoable(300_000, (world) => {
  for (const { genoa, claim } of realClaims(world)) {
    const volume = genoa.volume(claim.spec?.volumeName);
    if (!volume) continue;
    const claimRef = { ...volume.spec?.claimRef, uid: 'another' };
    genoa.setSpec(volume, { claimRef, persistentVolumeReclaimPolicy: 'Retain' });
    genoa.setStatus(claim, { phase: 'Lost' });
  }
});

/** The cluster that the move went to falls silent between the two looks that end an undo window. */
function silentBetweenLooks(): (world: StorageWorld) => void {
  let isWatched = false;
  return (world) => {
    const app = world.apps.get('a');
    const genoa = world.providers.get('genoa');
    if (isWatched || !app || !genoa) return;
    isWatched = true;
    const { store } = world.home;
    const before = store.onWrite;
    store.onWrite = (old, now) => {
      before(old, now);
      if (phaseNow(world) === 'Discarding') genoa.store.isCut = true;
    };
  };
}

/** The copy of an undo breaks off again and again. */
const brokenUndo = () => (world: StorageWorld) => {
  const app = world.apps.get('a');
  if (app && world.move(app)?.status?.way === 'back') world.breakOff();
};

/** The cluster of the source, and the pod there, go in the moment in which the copy has been compared. It is back as soon as the move goes on. */
function sourceGoesAtTheEnd(): (world: StorageWorld) => void {
  let isWatched = false;
  return (world) => {
    const milan = world.providers.get('milan');
    if (!milan) return;
    const phase = phaseNow(world);
    if (phase !== 'FinalCopy') milan.store.isCut = false;
    if (isWatched) return;
    isWatched = true;
    const { store } = world.home;
    const before = store.onWrite;
    store.onWrite = (old, now) => {
      before(old, now);
      const status = now?.kind === pods.kind ? (now as Pod).status : undefined;
      if (!now?.metadata.name.endsWith('-final') || status?.phase !== 'Succeeded' || milan.store.isCut) return;
      milan.store.isCut = true;
      const send = world.home.pod(shop, now.metadata.name.replace(/-final$/, '-send'));
      const lastTransitionTime = new Date(world.clock.now()).toISOString();
      if (send) world.home.setStatus(send, { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime }] });
    };
  };
}

/** While the volume is copied, by an API server that does not refuse it. */
function earlyConfirm(): (world: StorageWorld) => void {
  let isDone = false;
  return (world) => {
    const app = world.apps.get('a');
    if (isDone || !app || phaseNow(world) !== 'Copying') return;
    isDone = true;
    world.order(app, 'confirm');
  };
}

const both =
  (...all: readonly (() => (world: StorageWorld) => void)[]) =>
  (): ((world: StorageWorld) => void) => {
    const begun = all.map((one) => one());
    return (world) => {
      for (const one of begun) one(world);
    };
  };

const kept = { milan: 1, genoa: 1 };
const undoable: End = { phase: 'Undoable', at: 'genoa', disks: kept };

export const disturbed: readonly Disturbed[] = [
  {
    what: 'an undo without a copy, when the watch at the provider has not shown the switch yet',
    turns: [['genoa'], ['order', 'undo-discard-new-writes']],
    disturbance: unheard,
    end: { phase: 'Undone', at: 'milan', disks: { milan: 1, genoa: 0 } },
  },
  {
    what: 'a VolumeMove that is deleted when its switch has waited a quarter of an hour for a pod to end',
    turns: [['genoa']],
    disturbance: longSwitch,
    end: { phase: undefined, at: 'genoa', disks: { milan: 1, genoa: 1 } },
  },
  {
    what: 'an undo to a cluster that is silent from the switch on, whose VolumeMove is deleted: what was left is a record',
    turns: [['genoa'], ['order', 'undo-discard-new-writes']],
    disturbance: silentUndo,
    end: { phase: undefined, at: 'milan', disks: { milan: 1, genoa: 1 } },
  },
  {
    what: 'a claim that grows when the switch has begun',
    turns: [['genoa']],
    disturbance: grows,
    end: { phase: 'Aborted', at: 'milan', disks: { milan: 1, genoa: 0 } },
  },
  {
    what: 'a pod that is admitted past the gate and writes when the switch has begun',
    turns: [['genoa']],
    disturbance: latePod,
    end: { phase: 'Undoable', at: 'genoa', disks: { milan: 1, genoa: 1 } },
  },
  {
    what: 'an abort that comes after the switch and after the end of the undo window, which says that an undo is accepted',
    turns: [['genoa'], ['late', 'abort'], ['minutes', '15']],
    disturbance: () => () => undefined,
    end: undoable,
  },
  {
    what: 'a confirmation that comes while the volume is copied: it is not taken up after the switch',
    turns: [['genoa'], ['minutes', '15']],
    disturbance: earlyConfirm,
    end: undoable,
  },
  {
    what: 'such a confirmation and an undo window that ends when the other cluster is silent: it orders nothing then, either',
    turns: [['genoa'], ['late'], ['minutes', '15']],
    disturbance: both(earlyConfirm, silentBetweenLooks),
    end: undoable,
  },
  {
    what: 'an undo that comes after the end of the window and is refused, because a bare pod uses the claim',
    turns: [['genoa'], ['late', 'undo-copy-back'], ['minutes', '15']],
    disturbance: barePod,
    end: undoable,
  },
  {
    what: 'an undo that comes after the end of the window and whose copy breaks off again and again',
    turns: [['genoa'], ['late', 'undo-copy-back'], ['minutes', '15']],
    disturbance: brokenUndo,
    end: undoable,
  },
  {
    what: 'the end of an undo window after the claim was deleted in the cluster that the move went to',
    turns: [['genoa'], ['minutes', '10'], ['late'], ['minutes', '15']],
    disturbance: realClaimGone,
    end: undoable,
  },
  {
    what: 'the end of an undo window after the claim lost its volume in the cluster that the move went to',
    turns: [['genoa'], ['minutes', '10'], ['late'], ['minutes', '15']],
    disturbance: realClaimLost,
    end: undoable,
  },
  {
    what: 'the end of an undo window in which the cluster that the move went to answers once, and is then silent',
    turns: [['genoa'], ['late'], ['minutes', '15']],
    disturbance: silentBetweenLooks,
    end: undoable,
  },
  {
    what: 'a source that goes with its cluster in the moment in which the copy has been compared',
    turns: [['genoa']],
    disturbance: sourceGoesAtTheEnd,
    end: undoable,
  },
];
