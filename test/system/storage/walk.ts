/** The shortest life of claims over two clusters: made here, made at the provider, kept by the provider when the peering ends, and had back there. */
import { describe, expect, test } from 'vitest';
import { coreEvents, csiStorageCapacities, namespaces, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { consumer, provider, reported, type Stage } from '../whole-clusters/stage.ts';
import { actsOn } from './acts.ts';
import { claim, genuine, on as onNode, reader, shop, shopThere, writer } from './storage-stage.ts';

/** A claim `near`, which stays. */
export function claimHere(on: () => Stage): void {
  const { ready, removePod, read, claimAt, bound } = actsOn(on);
  describe('a claim of class liqo whose first pod runs on a node of this cluster', () => {
    test('B108 has its volume in this cluster, and the next pod reads what the first wrote', async () => {
      await on().apply(consumer, claim('near'), writer('near-writer', 'near', 'written at home', onNode(genuine)));
      expect(await ready('near-writer')).toBe(genuine);
      const { metadata, spec } = await bound(consumer, shop, 'near');
      const real = await claimAt(consumer, storageNamespace, metadata.uid ?? '');
      expect(real?.spec?.storageClassName).toBe('loop');
      const volume = await on()
        .api(consumer)
        .get(persistentVolumes, { name: spec?.volumeName ?? '' });
      expect(volume?.spec?.csi?.driver).toBe('loop.isthmus.test');
      await removePod('near-writer');
      expect(await read('near-reader', 'near')).toEqual({ text: 'written at home\n', node: genuine });
    });
  });
}

/** A claim `far`, which stays. */
export function claimThere(on: () => Stage): void {
  const { kubectl, ready, removePod, read, bound } = actsOn(on);
  describe('a claim of class liqo whose first pod runs at the provider', () => {
    test('B106 has its volume there, with the bytes that the pod wrote', async () => {
      await on().apply(consumer, claim('far'), writer('far-writer', 'far', 'written next door', onNode(provider)));
      expect(await ready('far-writer')).toBe(provider);
      await bound(consumer, shop, 'far');
      const real = await bound(provider, shopThere, 'far');
      expect(real.spec?.storageClassName).toBe('loop');
      expect(await kubectl(provider, '-n', shopThere, 'exec', 'far-writer', '--', 'cat', '/data/notes')).toBe(
        'written next door\n',
      );
      const events = await on().api(consumer).list(coreEvents, { namespace: shop });
      const warnings = events.filter(({ type, involvedObject }) => type === 'Warning' && involvedObject.name === 'far');
      expect(warnings.map(({ reason, message }) => `${reason}: ${message}`)).toEqual([]);
    });

    test('keeps later pods at the provider, where they read those bytes', async () => {
      await removePod('far-writer');
      expect(await read('far-reader', 'far')).toEqual({ text: 'written next door\n', node: provider });
      await on().apply(consumer, reader(shop, 'far-stranger', 'far', onNode(genuine)));
      const { status } = await on().podThat(consumer, [shop, 'far-stranger'], 'cannot be placed', (found) =>
        Boolean(found.status?.conditions?.some(({ reason }) => reason === 'Unschedulable')),
      );
      expect(status?.conditions?.map(({ message }) => message).join()).toMatch(/volume node affinity|didn't match/);
      await removePod('far-stranger');
    });
  });
}

/** `size`: of the claim `far`. */
export function keptVolume(on: () => Stage, { size }: { readonly size: string }): void {
  const { retained, volumeTool } = actsOn(on);
  describe('what a volume at the provider holds', () => {
    test('is kept when the peering ends, with its size, its owner and a date', async () => {
      const ended = await on().world.isthmus('unpeer', consumer, provider, '--wait');
      expect(ended.code, reported(ended)).toBe(0);
      const { spec } = await retained('far');
      expect(spec).toMatchObject({ consumer, size, remoteClaim: { namespace: shopThere, name: 'far' } });
      expect(Date.parse(spec.expiresAt) - Date.parse(spec.keptSince)).toBe(30 * 86_400_000);
      expect(await volumeTool('list')).toMatch(new RegExp(`rome +shop/far +${size} +loop +Kept`));
      expect(await on().api(provider).get(namespaces, { name: shopThere })).toBeUndefined();
      const said = await on().api(consumer).list(csiStorageCapacities, { namespace: storageNamespace });
      expect(said.map(({ nodeTopology }) => nodeTopology?.matchLabels ?? 'of this cluster')).toEqual([
        'of this cluster',
      ]);
    });
  });
}

/** The data of the claim `far`, which the provider keeps. */
export function rescuedVolume(on: () => Stage): void {
  const { kubectl, retained, volumeTool, read } = actsOn(on);
  describe('what a provider keeps of a volume', () => {
    test('is in a claim of the provider after it was adopted there', async () => {
      await kubectl(provider, 'create', 'namespace', 'rescue');
      const { metadata } = await retained('far');
      await volumeTool('adopt', metadata.name, '--namespace', 'rescue', '--claim', 'saved');
      expect((await read('rescuer', 'saved', {}, [provider, 'rescue'])).text).toBe('written next door\n');
      expect(await volumeTool('list')).not.toContain('shop/far');
    });
  });
}
