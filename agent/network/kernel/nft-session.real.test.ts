/** The nft that goes on running, against a real kernel. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { eventually } from '#test/harness/eventually.ts';
import { NetnsFixture } from '#test/harness/netns.ts';
import { commandsIn } from './commands.ts';
import { withNftSession } from './nft-session.ts';

const world = new NetnsFixture();
afterAll(() => world.close());

const table = `table ip isthmus {
	map names {
		type ipv4_addr : ipv4_addr
		elements = { 10.0.0.1 : 10.1.0.1 }
	}
	chain input {
		type filter hook input priority 0; policy accept;
		ip saddr 10.9.9.9 drop
	}
}
`;
const list = ['-j', '-s', 'list', 'table', 'ip', 'isthmus'];

/** Those that listen to lines in the namespace of `pid`. */
const running = (pid: number): string[] =>
  readdirSync('/proc').filter((name) => {
    try {
      return (
        /^\d+$/.test(name) &&
        readlinkSync(`/proc/${name}/ns/net`) === readlinkSync(`/proc/${pid}/ns/net`) &&
        /^nft\0.*-i\0/.test(readFileSync(`/proc/${name}/cmdline`, 'utf8'))
      );
    } catch {
      return false; // it ended while we looked
    }
  });

test('it answers like a separate process, byte for byte, also while another program changes a table, and ends with its owner', async () => {
  const netns = await world.add('talk');
  const plain = commandsIn(`/proc/${netns.pid}/ns/net`);
  let processes = 0;
  const counting = {
    ...plain,
    run: (program: string, args: readonly string[]) => {
      processes += 1;
      return plain.run(program, args);
    },
  };
  const one = withNftSession(counting);
  await plain.must('nft', ['-f', await plain.file('table', table)]);
  await one.run('nft', list);
  expect(processes).toBe(1);
  const changes = [
    [],
    ['add', 'element', 'ip', 'isthmus', 'names', '{ 10.0.0.2 : 10.1.0.2 }'],
    ['add', 'rule', 'ip', 'isthmus', 'input', 'ip', 'saddr', '10.8.8.8', 'drop'],
    ['flush', 'chain', 'ip', 'isthmus', 'input'],
    ['add', 'table', 'ip', 'foreign'],
  ];
  for (const change of changes) {
    if (change.length > 0) await netns.exec('nft', ...change);
    expect(await one.run('nft', list)).toEqual(await plain.run('nft', list));
  }
  expect(processes).toBe(1);
  expect(running(netns.pid)).toHaveLength(1);

  await netns.exec('nft', 'delete', 'table', 'ip', 'isthmus');
  expect(await one.run('nft', list)).toMatchObject({ code: 1, stdout: '' });
  await plain.must('nft', ['-f', await plain.file('table', table)]);
  for (let i = 0; i < 2; i++) expect(await one.run('nft', list)).toEqual(await plain.run('nft', list));
  expect(running(netns.pid)).toHaveLength(1);

  one.close();
  await eventually('it has ended', () => running(netns.pid).length === 0);
});
