/** A provider of kept volumes, whose consumer and administrator are played. What must always hold is asked after every single write. */
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestVolume, keptAnnotation } from '#shared/domain/guest-volume-keys.ts';
import { type KubeObject, refOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { claimAnnotations, storageAnnotation, storageData } from '#shared/domain/storage-keys.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type RetainedVolume, retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { randomOf } from '../orderings.ts';
import { Agents, type Fate } from './agents.ts';
import { type Disk, diskClass, Kubernetes, selectedNode } from './kubernetes.ts';
import { consumer, shop, shopThere } from './names.ts';

const provider = 'milan';
/** Namespace of the administrator's own claims. */
export const rescue = 'rescue';
const unpublished = 'isthmus.dev/unpublished';
/** Of 300 ms: longer than the retention controller leaves a binding unwatched. */
const quietTurns = 20;

interface Order {
  readonly namespace: string;
  readonly claim: string;
}
const isFor = (order: Order | undefined, { metadata }: PersistentVolumeClaim): boolean =>
  order?.namespace === metadata.namespace && order?.claim === metadata.name;
const isPublished = ({ metadata }: PersistentVolumeClaim): boolean => metadata.annotations?.[unpublished] === undefined;
const atRest = (ref: { readonly namespace?: string; readonly name: string }): string => `${ref.namespace}/${ref.name}`;

/** UID of the claim after whose end it is kept. */
const endedOf = (volume: PersistentVolume | undefined): string | undefined =>
  JSON.parse(volume?.metadata.annotations?.[keptAnnotation.remoteClaim] ?? '{}').uid;

/** What a user and an administrator see and may expect of one disk. */
interface Expected {
  /** The order to adopt that holds. */
  order?: Order | undefined;
  /** Earlier ones, until the agent has taken the reservation off: a claim that comes before that has the volume. */
  withdrawn: readonly Order[];
  /** It was ordered to go. */
  mayGo: boolean;
  /** An administrator's own claim has had it: what becomes of it then is that administrator's. */
  isRescued: boolean;
}

export class Provider {
  readonly clock = new ManualClock();
  readonly faults: string[] = [];
  /** How often a claim got a volume that had another one before. */
  adopted = 0;
  readonly milan: Kubernetes;
  readonly agents: Agents;
  readonly #expected = new Map<string, Expected>();
  /** Disks that were ever written to: of the others nothing is lost. */
  readonly #used = new Set<string>();
  #serial = 0;

  constructor(seed: number, fate: Fate = () => 'lives') {
    const random = randomOf(seed);
    this.milan = new Kubernetes(provider, this.clock, random, { consumer, namespace: shopThere });
    this.milan.bindsSlowly = true;
    const { store } = this.milan;
    const labels = { [label.remoteClusterId]: consumer };
    for (const metadata of [{ name: shopThere, labels }, { name: rescue }])
      store.create({ apiVersion: 'v1', kind: 'Namespace', metadata } as never);
    store.onWrite = (before, after) => this.#onWrite(before, after);
    const fault = (what: string): void => void this.faults.push(what);
    const clusters = new Map([[provider, this.milan]]);
    this.agents = new Agents({ clusters, peered: new Set(), clock: this.clock, random, fault });
    this.agents.fate = fate;
    this.agents.start();
  }

  // What the consumer and the administrator do.

  claim(name: string, namespace = shopThere): PersistentVolumeClaim | undefined {
    return this.milan.claim(namespace, name);
  }
  /** `isPublished`: the consumer's volume stands for it already. */
  make(name: string, isPublished = true): void {
    if (this.claim(name) !== undefined) return;
    this.#serial += 1;
    const home = { namespace: shop, name, uid: `home-${this.#serial}` };
    this.milan.store.create({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        namespace: shopThere,
        name,
        annotations: {
          ...claimAnnotations(home, 'Delete'),
          [selectedNode]: 'milan-1',
          ...(!isPublished && { [unpublished]: 'rome' }),
        },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: diskClass,
        resources: { requests: { storage: '1Gi' } },
      },
    } as never);
  }
  /** As `isthmus volume adopt --namespace` makes it. */
  makeRescue(volume: string, name: string): void {
    if (this.claim(name, rescue) !== undefined) return;
    this.milan.store.create({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: rescue, name },
      spec: { storageClassName: diskClass, volumeName: volume, resources: { requests: { storage: '1Gi' } } },
    } as never);
  }
  publish(name: string): void {
    const claim = this.claim(name);
    if (claim?.metadata.annotations?.[unpublished] === undefined) return;
    const { [unpublished]: _, ...annotations } = claim.metadata.annotations;
    this.milan.store.replace({ ...claim, metadata: { ...claim.metadata, annotations } });
  }
  /** `withData`: by the consumer's order; of one that is not published, as the consumer discards those. */
  end(name: string, withData: boolean, namespace = shopThere): void {
    const claim = this.claim(name, namespace);
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return;
    if (withData) this.milan.annotate(claim, { [storageAnnotation.data]: storageData.delete });
    this.milan.store.delete(persistentVolumeClaims, refOf(claim));
  }
  records(): RetainedVolume[] {
    return this.milan.store.all(retainedVolumes);
  }
  /** What `isthmus volume adopt` writes; without `to` for the claim that had it. */
  adopt({ metadata }: RetainedVolume, to?: Order): void {
    const record = this.milan.store.now(retainedVolumes, refOf({ metadata } as KubeObject));
    if (record === undefined || record.spec.discard) return;
    const { claim, remoteClaim } = record.spec;
    const adopt = to ?? { namespace: remoteClaim.namespace, claim: claim?.name ?? remoteClaim.name };
    this.milan.setSpec(record, { adopt });
    this.#order(record, adopt);
  }
  takeBack({ metadata }: RetainedVolume): void {
    const record = this.milan.store.now(retainedVolumes, refOf({ metadata } as KubeObject));
    if (record === undefined) return;
    const { adopt: _, ...spec } = record.spec;
    this.milan.store.replace({ ...record, spec } as KubeObject);
    this.#order(record, undefined);
  }
  discard(record: RetainedVolume): void {
    if (record.spec.adopt === undefined) this.milan.setSpec(record, { discard: true });
  }

  // Time.

  async turn(chance: number, most: number): Promise<void> {
    const breathe = async (turns: number): Promise<void> => {
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
    };
    this.milan.play(() => true, chance);
    this.#use();
    await breathe(2);
    for (let i = 0; i < most; i++) {
      if (!this.milan.store.deliverOne()) break;
      if (i % 4 === 3) await breathe(1);
    }
    await breathe(2);
    this.clock.advance(300);
  }
  /** Until nothing of it changes any more. */
  async rest(): Promise<void> {
    const versions = (): string =>
      [persistentVolumeClaims, persistentVolumes, retainedVolumes]
        .flatMap((kind) => this.milan.store.all(kind as typeof persistentVolumes))
        .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
        .join();
    let quiet = 0;
    for (let before = versions(), i = 0; quiet < quietTurns && i < 400; i++) {
      this.agents.start();
      await this.turn(1, 200);
      const now = versions();
      quiet = now === before && this.milan.store.isQuiet ? quiet + 1 : 0;
      before = now;
    }
    if (quiet < quietTurns) this.faults.push('it does not come to rest');
  }

  // What must hold.

  #expectedOf(disk: string): Expected {
    const found = this.#expected.get(disk) ?? { withdrawn: [], mayGo: false, isRescued: false };
    this.#expected.set(disk, found);
    return found;
  }
  volumeOf({ id }: Disk): PersistentVolume | undefined {
    return this.milan.store.all(persistentVolumes).find(({ spec }) => spec?.csi?.volumeHandle === id);
  }
  holderOf(volume: PersistentVolume | undefined): PersistentVolumeClaim | undefined {
    const { claimRef } = volume?.spec ?? {};
    const claim = this.milan.claim(claimRef?.namespace, claimRef?.name ?? '');
    return claimRef?.uid !== undefined && claim?.metadata.uid === claimRef.uid ? claim : undefined;
  }

  /** Pods of claims that are bound and published write. */
  #use(): void {
    for (const disk of this.milan.disks.values()) {
      const volume = this.volumeOf(disk);
      const claim = this.holderOf(volume);
      const isUsed =
        claim?.spec?.volumeName === volume?.metadata.name &&
        claim?.status?.phase === 'Bound' &&
        claim.metadata.deletionTimestamp === undefined &&
        isPublished(claim);
      if (!isUsed) continue;
      this.#serial += 1;
      disk.lines.add(this.#serial);
      this.#used.add(disk.id);
    }
  }

  #onWrite(before: KubeObject, after: KubeObject | undefined): void {
    if (before.kind === retainedVolumes.kind) this.#onRecord(before as RetainedVolume, after as RetainedVolume);
    if (before.kind === persistentVolumes.kind && after !== undefined)
      this.#onVolume(before as PersistentVolume, after as PersistentVolume);
    if (before.kind === persistentVolumeClaims.kind) this.#onClaim(after as PersistentVolumeClaim | undefined);
    if (before.kind === persistentVolumeClaims.kind && after === undefined) this.#onClaimGone(before);
    if (before.kind === persistentVolumes.kind && after === undefined) {
      const { volumeHandle = '' } = (before as PersistentVolume).spec?.csi ?? {};
      if (!this.#expectedOf(volumeHandle).mayGo && this.#used.has(volumeHandle))
        this.faults.push(`disk ${volumeHandle} went without an order`);
    }
    for (const disk of this.milan.disks.values()) this.#expectListed(disk);
  }

  /** Of a user; what the agent writes into a record is none. */
  #order({ metadata, spec }: RetainedVolume, order: Order | undefined): void {
    const volume = this.milan.volume(metadata.name);
    const disk = volume?.spec?.csi?.volumeHandle;
    if (disk === undefined) return;
    const expected = this.#expectedOf(disk);
    if (expected.order) expected.withdrawn = [...expected.withdrawn, expected.order];
    // Given to a record of an end that is not the last one any more, it is over with that record.
    const { claimRef } = volume?.spec ?? {};
    const uid = endedOf(volume);
    // Ends of guests' claims that had the volume are marked before those go; an administrator's claim has no mark.
    const hasNamed = claimRef?.uid !== undefined && claimRef.uid !== uid && claimRef.namespace === rescue;
    const hasEndedAgain = hasNamed && this.holderOf(volume) === undefined;
    expected.order = hasEndedAgain || uid !== spec.remoteClaim.uid ? undefined : order;
  }

  #onRecord(before: RetainedVolume, after: RetainedVolume | undefined): void {
    const volume = this.milan.volume(before.metadata.name);
    const disk = volume?.spec?.csi?.volumeHandle;
    if (disk === undefined || after === undefined || before === after) return;
    const expected = this.#expectedOf(disk);
    const { discard } = after.spec;
    if (discard && before.spec.discard === undefined) expected.mayGo = true;
  }

  /** With an administrator's claim that had its name on the volume, orders are over that were given meanwhile. */
  #onClaimGone({ metadata: { uid, namespace } }: KubeObject): void {
    if (namespace !== rescue) return;
    for (const { spec } of this.milan.store.all(persistentVolumes))
      if (spec?.claimRef?.uid === uid) this.#expectedOf(spec?.csi?.volumeHandle ?? '').order = undefined;
  }

  #onVolume(before: PersistentVolume, after: PersistentVolume): void {
    const uid = after.spec?.claimRef?.uid;
    const claim = this.holderOf(after);
    const disk = after.spec?.csi?.volumeHandle ?? '';
    const expected = this.#expectedOf(disk);
    const ended = endedOf(after);
    if (ended !== endedOf(before)) {
      expected.withdrawn = [];
      // Also where it was published only while it ended: it never had a pod, so that an agent that has not heard of that may let the order go on.
      const hadIt = claim?.metadata.uid === ended && claim?.spec?.volumeName === after.metadata.name;
      if (claim !== undefined && hadIt && isPublished(claim) && isFor(expected.order, claim))
        expected.order = undefined;
    }
    if (uid === before.spec?.claimRef?.uid || before === after) return;
    const { order, withdrawn } = expected;
    // It names a claim, from which Kubernetes may still take it and leave it reserved; or it is reserved for another one, or for none.
    const { namespace, name } = after.spec?.claimRef ?? {};
    const mayBeHad = uid === undefined || claim !== undefined;
    expected.withdrawn = withdrawn.filter((one) => mayBeHad && one.namespace === namespace && one.claim === name);
    if (claim === undefined) return;
    this.adopted += 1;
    if (![order, ...withdrawn].some((one) => isFor(one, claim)))
      this.faults.push(`claim ${atRest(claim.metadata)} gets disk ${disk} of another claim without an order`);
  }

  #onClaim(claim: PersistentVolumeClaim | undefined): void {
    if (claim === undefined) return;
    const volume = this.milan.volume(claim.spec?.volumeName);
    const disk = volume?.spec?.csi?.volumeHandle;
    if (volume === undefined || disk === undefined || volume.spec?.claimRef?.uid !== claim.metadata.uid) return;
    const expected = this.#expectedOf(disk);
    if (claim.metadata.namespace === rescue) expected.isRescued = true;
    // It has what was ordered for it. One that ends had it before the order, or is judged by its end.
    if (isPublished(claim) && claim.metadata.deletionTimestamp === undefined && isFor(expected.order, claim))
      expected.order = undefined;
    const isOrdered = claim.metadata.annotations?.[storageAnnotation.data] === storageData.delete;
    const hadItFirst = volume.metadata.name === `disk-${claim.metadata.uid}`;
    if (isOrdered && claim.metadata.deletionTimestamp !== undefined && (isPublished(claim) || hadItFirst))
      expected.mayGo = true;
  }

  /** At each moment: what no claim has, and what nothing ordered to delete, `isthmus volume list` shows. */
  #expectListed(disk: Disk): void {
    const expected = this.#expectedOf(disk.id);
    const volume = this.volumeOf(disk);
    if (volume === undefined || disk.lines.size === 0 || expected.mayGo || expected.isRescued || this.holderOf(volume))
      return;
    if (this.milan.store.now(retainedVolumes, { name: volume.metadata.name }) === undefined)
      this.faults.push(`disk ${disk.id} is kept and not listed`);
  }

  /** After everything has come to rest. */
  expectSettled(): void {
    for (const { metadata, spec } of this.records()) {
      const volume = this.milan.volume(metadata.name);
      const claim = this.holderOf(volume);
      const isAwaited = claim !== undefined && !isPublished(claim);
      if (volume === undefined) this.faults.push(`record ${metadata.name} is of no volume`);
      else if (claim !== undefined && !isAwaited) this.faults.push(`volume ${metadata.name} is listed and has a claim`);
      else if (volume.metadata.labels?.[guestVolume.keptFor] !== consumer)
        this.faults.push(`volume ${metadata.name} is listed and has no marks`);
      const { order } = this.#expectedOf(volume?.spec?.csi?.volumeHandle ?? '');
      if (JSON.stringify(order) !== JSON.stringify(spec.adopt))
        this.faults.push(`record ${metadata.name} says ${JSON.stringify(spec.adopt)}, not ${JSON.stringify(order)}`);
      const { claimRef } = volume?.spec ?? {};
      const isReserved = claimRef?.uid === undefined && claimRef?.namespace === order?.namespace;
      if (order !== undefined && claim === undefined && !(isReserved && claimRef?.name === order.claim))
        this.faults.push(`volume ${metadata.name} is not reserved for claim ${order.namespace}/${order.claim}`);
    }
    for (const { metadata, spec } of this.milan.store.all(persistentVolumes)) {
      const { order, isRescued } = this.#expectedOf(spec?.csi?.volumeHandle ?? '');
      if (spec?.claimRef?.uid === undefined && order === undefined && !isRescued)
        this.faults.push(`volume ${metadata.name} is reserved without an order`);
    }
  }
}
