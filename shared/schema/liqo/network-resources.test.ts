import { expect, it } from 'vitest';
import { allKinds } from '../all-kinds.ts';
import { networkKinds } from './network-resources.ts';

it('handles without schemas name the same resources as the kinds with schemas', () => {
  const ofNetwork = allKinds.filter(({ group }) => group === 'networking.liqo.io' || group === 'ipam.liqo.io');
  expect(
    Object.values(networkKinds)
      .map(({ plural }) => plural)
      .sort(),
  ).toEqual(ofNetwork.map(({ plural }) => plural).sort());
  for (const handle of Object.values(networkKinds))
    expect(allKinds.find(({ plural }) => plural === handle.plural)).toMatchObject(handle);
});
