import { expect, it } from 'vitest';
import { readOptions } from './options.ts';

it('sets no limit of time by itself, and one beside --resume, which writes the page', () => {
  expect(readOptions([])).toMatchObject({ groups: ['node'], minutes: Number.POSITIVE_INFINITY, writes: false });
  expect(readOptions(['--resume', '--minutes', '10'])).toMatchObject({ resume: true, minutes: 10, writes: true });
});

it("takes Kubernetes' suites for storage, here or at a provider, instead of groups", () => {
  expect(readOptions([]).storage).toBeUndefined();
  expect(readOptions(['--storage', 'provider']).storage).toBe('provider');
});

it('has every pod on the virtual node for node and volumes, and half of the nodes virtual for network and apps', () => {
  const virtual = (...names: string[]) => readOptions(names.flatMap((name) => ['--group', name])).virtual;
  expect([virtual(), virtual('node', 'volumes'), virtual('network', 'apps')]).toEqual(['all', 'all', 'half']);
});

it.each([
  [['--storage', 'there'], /--storage is there: here, provider are accepted/],
  [['--storage', 'here', '--group', 'node'], /one of them is accepted/],
  [['--minutes', '10'], /--minutes is accepted with --resume/],
  [['--minutes', '10', '--write'], /--minutes is accepted with --resume/],
  [['--minutes', '10', '--resume', '--list'], /not with --list/],
  [['--minutes', '0', '--resume'], /--minutes is 0/],
  [['--minutes', 'ten', '--resume'], /--minutes is ten/],
  [['--group', 'nodes'], /--group is nodes/],
  [['--group', 'node', '--group', 'apps'], /--group is node, apps: groups of one table are accepted/],
])('refuses %j', (args, words) => {
  expect(() => readOptions(args)).toThrow(words);
});
