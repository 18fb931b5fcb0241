/** Some faults of `npm run doctor-drill`, one of each kind: the doctor's first answer names them, and it finds nothing before and after. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readTar } from '#shared/archive/tar.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { drill, healthy } from '../../drill/drill.ts';
import type { DrillGround } from '../../drill/fault.ts';
import { faults } from '../../drill/faults.ts';
import { groundOf } from '../../drill/ground.ts';
import { clusterNames, consumer, type Stage } from '../stage.ts';

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

    test('a support bundle of both clusters has none of their secrets', async () => {
      const file = path.join(ground.dir, `bundle-${Math.trunc(process.uptime() * 1_000)}.tar.gz`);
      const ends = ['--kubeconfig', ground.kubeconfig('rome'), '--peer-kubeconfig', ground.kubeconfig('milan')];
      await ground.stage.world.mustIsthmus('support-bundle', ...ends, '--file', file);
      const files = readTar(gunzipSync(readFileSync(file)));
      expect([...files.keys()]).toEqual(expect.arrayContaining(['doctor.json', 'status.json', 'versions.json']));
      expect([...files.keys()].filter((name) => name.includes('/logs/')).length).toBeGreaterThan(0);
      const text = [...files.values()].map(String).join('\n');
      for (const cluster of clusterNames) {
        const values = (await ground.stage.api(cluster).list(secrets)).flatMap(({ data }) => Object.values(data ?? {}));
        expect(values.length).toBeGreaterThan(0);
        for (const value of values) {
          const forms = [value, Buffer.from(value, 'base64').toString('latin1')].filter((one) => one.length >= 8);
          for (const form of forms) expect(text.includes(form)).toBe(false);
        }
      }
    });

    test('is tried with faults that the drill has', () => {
      expect(faults.filter(({ what }) => chosen.includes(what))).toHaveLength(chosen.length);
    });
  });
}
