import { expect, test } from 'vitest';
import { bytesDone, copyArgs, isSenderCommand, statsOf } from './rsync.ts';

const way = { program: ['node', 'mover.mjs'], host: 'peer', from: '/data/', to: '/copy/', isDevice: false };

test('the copy comes from the folder of the peer, through this program', () => {
  const args = copyArgs(way);
  expect(args.slice(-3)).toEqual(['--rsh=node mover.mjs dial', 'peer:/data/', '/copy/']);
  expect(args).toEqual(expect.arrayContaining(['--inplace', '--numeric-ids', '--delete', '--partial', '--fsync']));
});

test('of a block device what is in it is copied, and neither its node nor its times', () => {
  const args = copyArgs({ ...way, from: '/dev/volume', to: '/dev/volume', isDevice: true });
  expect(args).toEqual(expect.arrayContaining(['--copy-devices', '--write-devices', '--ignore-times', '--inplace']));
  expect(args).not.toContain('--delete');
  expect(isSenderCommand(['rsync', '--server', '--sender', '-e.L', '.', '/dev/volume'], '/dev/volume')).toBe(true);
});

test('a limit is what rsync reads as KiB in a second', () => {
  expect(copyArgs({ ...way, bytesPerSecond: 10_000_000 })).toContain('--bwlimit=9766');
  expect(copyArgs(way).some((option) => option.startsWith('--bwlimit'))).toBe(false);
});

test.each([
  {
    command: ['rsync', '--server', '--sender', '--bwlimit=9766', '-logDtpHAXrSe.LsfxCIvu', '.', '/data/'],
    serves: true,
  },
  { command: ['rsync', '--server', '--sender', '-logDtpHAXrSe.LsfxCIvu', '.', '/data/'], serves: true },
  { command: ['rsync', '--server', '-logDtpre.iLsfxC', '.', '/data/'], serves: false },
  { command: ['rsync', '--server', '--sender', '-e.L', '.', '/etc/'], serves: false },
  { command: ['rsync', '--server', '--sender', '-e.L', '.', '/data/', '/etc/'], serves: false },
  { command: ['rsync', '--server', '--sender', '/etc/', '.', '/data/'], serves: false },
  { command: ['rsync', '--server', '--daemon', '.', '/data/'], serves: false },
  { command: ['sh', '--server', '--sender', '.', '/data/'], serves: false },
])('the side with the data runs $command: $serves', ({ command, serves }) =>
  expect(isSenderCommand(command, '/data/')).toBe(serves),
);

test('figures are read from what rsync says', () => {
  const output =
    'Number of files: 1,207 (reg: 1,200, dir: 7)\nTotal file size: 75,497,503 bytes\nTotal transferred file size: 64 bytes\nLiteral data: 12 bytes\n';
  expect(statsOf(output)).toEqual({ files: 1_200, totalBytes: 75_497_503, transferredBytes: 64, literalBytes: 12 });
  expect(bytesDone('\r  32768  1%  0.00kB/s\r  1048576  50%  1.00MB/s    0:00:01')).toBe(1_048_576);
  expect(bytesDone('nothing yet')).toBeUndefined();
});
