/** Some faults of `npm run doctor-drill`, one of each kind: the doctor's first answer names them, and it finds nothing before and after. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { drill, healthy } from '../../drill/drill.ts';
import type { DrillGround } from '../../drill/fault.ts';
import { faults } from '../../drill/faults.ts';
import { groundOf } from '../../drill/ground.ts';
import { consumer, type Stage } from '../stage.ts';

const chosen = [
  'kubeconfig without rights',
  'taint on the virtual node',
  'selector of an offloaded namespace matches nothing',
  'provider refuses a privileged pod (pod security, guest rules)',
  'DNS of the provider scaled to 0',
];

export function doctor(onStage: () => Stage): void {
  describe('isthmus doctor', () => {
    let ground: DrillGround;
    beforeAll(async () => {
      ground = await groundOf(onStage());
    });
    afterAll(async () => {
      await onStage().deleteNamespaces(consumer, ground.namespace);
    });

    test('finds nothing in a peering that is well', async () => {
      await healthy(ground);
    });

    test.each(faults.filter(({ what }) => chosen.includes(what)))('names the cause: $what', async (fault) => {
      const { first, right } = await drill(ground, fault);
      expect(right, JSON.stringify(first)).toBe(true);
    });

    test('is tried with faults that the drill has', () => {
      expect(faults.filter(({ what }) => chosen.includes(what))).toHaveLength(chosen.length);
    });
  });
}
