import { expect, test } from 'vitest';
import { waitUntilStable } from './wait-until-stable.ts';

test('a wait for rest that fails names what changed last', async () => {
  let n = 0;
  const look = async () => ({ pods: 'same', phase: `phase ${n++}` });
  await expect(waitUntilStable('a cluster', look, { withinMs: 1, looks: 2 })).rejects.toThrow(
    /at rest; last seen: too few looks/,
  );
  await expect(waitUntilStable('a cluster', look, { withinMs: 500, looks: 3 })).rejects.toThrow(
    /phase 1.*became.*phase 2/,
  );
});
