/** Some faults of `npm run doctor-drill`, one of each kind: the doctor's first answer names them, and it finds nothing before and after. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { readTar } from '#shared/archive/tar.ts';
import { secrets } from '#shared/domain/core-kinds.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { clusterNames } from '../whole-clusters/stage.ts';
import { drill, healthy } from './drill.ts';
import type { DrillGround } from './fault.ts';
import { faults } from './faults.ts';
import { openDrill } from './ground.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'drill-under-test') };
/** Every wait inside has a deadline of its own, which says what was waited for. */
vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
let ground: DrillGround;

beforeAll(async () => {
  await removeProductClusters(place);
  ground = await openDrill(place.dir, () => undefined);
}, 900_000);
afterAll(async () => {
  await removeProductClusters(place);
}, 180_000);

const chosen = [
  'kubeconfig without rights',
  'taint on the virtual node',
  'selector of an offloaded namespace matches nothing',
  'provider refuses a privileged pod (pod security, guest rules)',
  'DNS of the provider scaled to 0',
  'ClusterRoleBinding of the agent deleted',
  'UDP dropped both ways',
];

test('the doctor finds nothing in a peering that is well', async () => {
  await healthy(ground);
});

test('without a kubeconfig, it finds nothing either, by the broker alone; and `status` shows both ends', async () => {
  const { world } = ground.stage;
  const alone = await world.mustIsthmus('doctor', 'rome', 'milan', '-o', 'json');
  expect(JSON.parse(alone)).toMatchObject({ clusters: [], looked: [expect.stringMatching(/^broker https:/)] });
  const status = await world.mustIsthmus('status', 'milan', '--kubeconfig', ground.kubeconfig('rome'), '-o', 'json');
  const [peering] = (JSON.parse(status) as { peerings: { phase: string; link: object }[] }).peerings;
  expect(peering).toMatchObject({
    phase: 'Ready',
    link: { rome: { status: 'Connected' }, milan: { status: 'Connected' } },
  });
});

test.each(faults.filter(({ what }) => chosen.includes(what)))('the doctor names the cause: $what', async (fault) => {
  const { first, right } = await drill(ground, fault);
  expect(right, JSON.stringify(first)).toBe(true);
});

test('the faults above are all among those of the drill', () => {
  expect(faults.filter(({ what }) => chosen.includes(what))).toHaveLength(chosen.length);
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
