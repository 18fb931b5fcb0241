/** Generated volumes and generated writes between the passes: what the movers copy is what is there, byte for byte. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, truncateSync, writeSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { Movers } from '#test/harness/movers.ts';

const block = 131_072;
const sector = 512;
let movers: Movers;
const attached: string[] = [];

beforeAll(async () => {
  movers = await Movers.start(18_731);
}, 300_000);
const cleanUp = (): void => {
  movers.stop();
  for (const device of attached.splice(0)) execFileSync('losetup', ['--detach', device]);
};
afterEach(cleanUp);
afterAll(() => movers.close());

const random = (seed: number, length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
};
function write(file: string, offset: number, bytes: Buffer): void {
  const handle = openSync(file, 'r+');
  writeSync(handle, bytes, 0, bytes.length, offset);
  closeSync(handle);
}
const options = { numRuns: 40, endOnFailure: true };

/** Of a share of the size, near its beginning, and near its end, where the last block is. */
const place = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 1));
const edit = fc.record({ place, length: fc.integer({ min: 1, max: 3 * block }), seed: fc.nat() });
const sectors = fc.oneof(fc.constantFrom(0, 1, block / sector - 1), fc.nat({ max: block / sector }));

function device(name: string, size: number): string {
  execFileSync('truncate', ['-s', String(size), movers.at(name)]);
  const made = execFileSync('losetup', ['--find', '--show', movers.at(name)], { encoding: 'utf8' }).trim();
  attached.push(made);
  return made;
}

test('a device of any size has every byte in one that is as large or larger, also after writes between the passes', async () => {
  const cases = fc.record({
    blocks: fc.integer({ min: 1, max: 24 }),
    sectors,
    more: sectors,
    stale: fc.boolean(),
    before: fc.array(edit, { maxLength: 4 }),
    between: fc.array(edit, { maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(cases, async ({ blocks, sectors: rest, more, stale, before, between }) => {
      const size = blocks * block + rest * sector;
      const [from, to] = [device('from.img', size), device('to.img', size + more * sector)];
      try {
        const apply = (edits: typeof before): void => {
          for (const { place: share, length, seed } of edits) {
            const fits = Math.min(length, size);
            write(from, Math.floor(share * (size - fits)), random(seed, fits));
          }
        };
        if (stale) write(to, 0, random(7, size));
        apply(before);
        movers.serve({ from, to });
        expect(await movers.fetch({ from, to }, 'live')).toMatchObject({ ok: true });
        apply(between);
        expect(await movers.fetch({ from, to }, 'final')).toEqual({ ok: true, verified: { files: 1, bytes: size } });
        expect(readFileSync(to).subarray(0, size).equals(readFileSync(from))).toBe(true);
      } finally {
        cleanUp();
        for (const name of ['from.img', 'to.img']) rmSync(movers.at(name));
      }
    }),
    // rsync once sent a part of the last block of these two, which are equal.
    { ...options, examples: [[{ blocks: 20, sectors: 255, more: 150, stale: false, before: [], between: [] }]] },
  );
}, 600_000);

const names = ['a', 'b', 'c'] as const;
const name = fc.constantFrom(...names);
const size = fc.oneof(fc.constantFrom(0, 1, 699, 700, 701, 2_048, block, block + 1), fc.nat({ max: 3 * block }));
const change = fc.oneof(
  fc.record({
    do: fc.constant('write' as const),
    name,
    place,
    length: fc.integer({ min: 1, max: 5_000 }),
    seed: fc.nat(),
  }),
  // Shrinks it, or lets it grow by a hole.
  fc.record({ do: fc.constant('truncate' as const), name, size }),
  fc.record({ do: fc.constant('append' as const), name, length: fc.integer({ min: 1, max: 5_000 }), seed: fc.nat() }),
  fc.record({ do: fc.constant('zero' as const), name, place, length: fc.integer({ min: 1, max: 2 * block }) }),
  fc.record({ do: fc.constant('remove' as const), name }),
  fc.record({ do: fc.constant('rename' as const), name, to: name }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

test('files that shrink, grow, get holes, go and come between the passes are as in a plain copy', async () => {
  const folder = (of: string): string => movers.at(of);
  const apply = (one: Change): void => {
    const file = `${folder('from')}/${one.name}`;
    execFileSync('touch', [file]);
    const length = readFileSync(file).length;
    if (one.do === 'truncate') truncateSync(file, one.size);
    else if (one.do === 'remove') rmSync(file);
    else if (one.do === 'rename') renameSync(file, `${folder('from')}/${one.to}`);
    else if (one.do === 'append') write(file, length, random(one.seed, one.length));
    else if (one.do === 'zero') write(file, Math.floor(one.place * length), Buffer.alloc(one.length));
    else write(file, Math.floor(one.place * length), random(one.seed, one.length));
  };
  const rounds = fc.tuple(fc.array(change, { maxLength: 8 }), fc.array(change, { maxLength: 8 }));
  await fc.assert(
    fc.asyncProperty(rounds, async ([before, between]) => {
      for (const one of ['from', 'to', 'plain']) {
        rmSync(folder(one), { recursive: true, force: true });
        mkdirSync(folder(one));
      }
      const volumes = { from: `${folder('from')}/`, to: `${folder('to')}/` };
      try {
        for (const one of before) apply(one);
        movers.serve(volumes);
        expect(await movers.fetch(volumes, 'live')).toMatchObject({ ok: true });
        for (const one of between) apply(one);
        expect(await movers.fetch(volumes, 'final')).toMatchObject({ ok: true, verified: expect.anything() });
        execFileSync('cp', ['-a', `${folder('from')}/.`, folder('plain')]);
        expect(execFileSync('diff', ['-r', folder('plain'), folder('to')], { encoding: 'utf8' })).toBe('');
      } finally {
        movers.stop();
      }
    }),
    options,
  );
}, 600_000);
