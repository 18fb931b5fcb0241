/** The mistakes that are planted in the rules of kept volumes, and which history finds each. */
import type { Mutation } from './mutations.ts';

/** A planted mistake in what a provider keeps, or in what is read once more before data goes. */
export interface KeptMutation extends Mutation {
  /** The drawn history of kept volumes that finds it, tried first; absent: a volume that is retained late finds it. */
  readonly history?: { readonly seed: number; readonly isRestless: boolean; readonly isCrowded?: true };
}

const decide = 'agent/offloading/provider/storage/decide.ts';
const controller = 'agent/offloading/provider/storage/controller.ts';
const volumes = 'agent/storage/volumes/controller.ts';
const calm = (seed: number) => ({ seed, isRestless: false });
const restless = (seed: number) => ({ seed, isRestless: true });
const crowded = (seed: number) => ({ seed, isRestless: true, isCrowded: true }) as const;

export const keptMutations: readonly KeptMutation[] = [
  {
    without: 'the policy Retain of a volume whose claim ends',
    file: decide,
    find: "      spec: { persistentVolumeReclaimPolicy: 'Retain' },\n    }),\n  };\n}",
    put: '    }),\n  };\n}',
    history: calm(1),
  },
  {
    without: "the consumer's order to delete",
    file: decide,
    find: 'annotations[storageAnnotation.data] === storageData.delete && !wantsRetain',
    put: '!wantsRetain',
    history: calm(1),
  },
  {
    without: 'the order that goes on when a claim was never published',
    file: decide,
    find: 'earlier.uid !== metadata.uid && isUnpublished)',
    put: 'earlier.uid !== metadata.uid && nowMs < 0)',
    history: calm(64),
  },
  {
    without: 'the marks of an earlier end on a claim that nothing was published of',
    file: decide,
    find: 'if (isOurs && isKept(volume) && !isUnpublished) return',
    put: 'if (isOurs && isKept(volume)) return',
    history: calm(47),
  },
  {
    without: 'the end of orders with the end of the claim that they were for',
    file: decide,
    find: 'if (isOfEarlierEnd(record, volume)) return { replace: kept.spec };',
    put: 'if (nowMs < 0) return { replace: kept.spec };',
    history: restless(288),
  },
  {
    without: 'the end of a reservation whose order was taken back',
    file: decide,
    find: 'const isReserved = isLeftOver || claimRef?.uid === undefined;',
    put: 'const isReserved = isLeftOver;',
    history: restless(17),
  },
  {
    without: 'the order that goes on when the name of a claim comes to the volume after the claim has gone',
    file: decide,
    find: "const isLeftOver = namesAnother && holder === 'none' && isGuarded;",
    put: 'const isLeftOver = namesAnother && nowMs < 0;',
    history: crowded(1364),
  },
  {
    without: 'the wait for a claim that is being bound',
    file: decide,
    find: 'const mayReserve = !isFree && !isTaken &&',
    put: 'const mayReserve = !isFree &&',
    history: calm(16),
  },
  {
    without: 'the question whether the claim that has its name on a volume is gone',
    file: decide,
    find: "if (holder === 'none')",
    put: 'if (nowMs < 0)',
    history: restless(288),
  },
  {
    without: "the policy Retain of a volume that an administrator's claim has",
    file: decide,
    find: "return { volume: unkept(volume, 'Retain') }",
    put: 'return { volume: unkept(volume, policyOf(volume)) }',
    history: restless(14),
  },
  {
    without: 'another look at a volume to which a claim is being bound',
    file: decide,
    find: 'return isTaken && !isBound ? { ...decision, lookAgainMs: bindingMs } : decision;',
    put: 'return decision;',
    history: calm(508),
  },
  {
    without: 'the record that is written before a claim goes',
    file: controller,
    find: '    await writeRecord(now, signal);\n',
    put: '',
    history: calm(1),
  },
  {
    without: 'the volume as the API server has it, before its record goes',
    file: controller,
    find: 'const volume = await api.get(persistentVolumes, { name }, signal);',
    put: 'const volume = volumes.get({ name });',
    history: calm(1),
  },
  {
    without: 'the claim that has its name on a volume as the API server has it',
    file: controller,
    find: '? await api.get(persistentVolumeClaims, { ...(namespace && { namespace }), name: bound }, signal)',
    put: '? guestClaimCache(caches).get({ ...(namespace && { namespace }), name: bound })',
    history: calm(14),
  },
  {
    without: 'the volume of a claim as the API server has it, before the claim goes',
    file: controller,
    find: 'name === undefined ? undefined : await api.get(persistentVolumes, { name }, signal);',
    put: 'name === undefined ? undefined : caches.cache(persistentVolumes).get({ name });',
    history: calm(1),
  },
  {
    without: 'the second look before the data of a claim at a provider goes',
    file: volumes,
    find: 'if (actions.some(isFinal)) {',
    put: 'if (actions.length < 0) {',
  },
  {
    without: 'the volume as the API server has it in that second look',
    file: volumes,
    find: 'observed = await observe(volume, askFor, signal);',
    put: 'observed = await observe(known, askFor, signal);',
  },
];
