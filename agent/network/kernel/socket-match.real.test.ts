import { afterAll, expect, test } from 'vitest';
import { NetnsFixture } from '#test/harness/netns.ts';
import { commandsIn } from './commands.ts';
import { matchesSockets } from './socket-match.ts';

const world = new NetnsFixture();
afterAll(() => world.close());

test('what the kernel says of itself is asked for without leaving a table behind', async () => {
  const netns = await world.add('asked');
  const commands = commandsIn(`/proc/${netns.pid}/ns/net`);
  expect(await matchesSockets(commands)).toBe(true);
  expect(await netns.exec('nft', 'list', 'ruleset')).toBe('');
  commands.close();
});

test('an nft that does not take the rule is a kernel without it', async () => {
  const refusing = { run: async () => ({ code: 1, stdout: '', stderr: 'Error' }), file: async () => '/nowhere' };
  expect(await matchesSockets(refusing)).toBe(false);
});
