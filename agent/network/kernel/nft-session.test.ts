import { expect, test, vi } from 'vitest';
import type { Commands, FollowHandlers } from './commands.ts';
import { withNftSession } from './nft-session.ts';

const list = ['-j', '-s', 'list', 'table', 'ip', 'isthmus'];

function start() {
  let time = 1_000;
  const processes: string[] = [];
  const talks: { readonly handlers: FollowHandlers; readonly written: string[]; stopped: boolean }[] = [];
  let code = 0;
  const commands = withNftSession(
    {
      run: async (program, args) => {
        processes.push([program, ...args].join(' '));
        return { code, stdout: code === 0 ? '{"by":"a process"}\n' : '', stderr: '' };
      },
      must: async (program, args) => {
        processes.push([program, ...args].join(' '));
        return '{"by":"a process"}\n';
      },
      converse: (_program, _args, handlers) => {
        const conversation = { handlers, written: [] as string[], stopped: false };
        talks.push(conversation);
        return {
          write: (line) => void conversation.written.push(line),
          stop: () => {
            conversation.stopped = true;
          },
        };
      },
      close: () => undefined,
    } satisfies Partial<Commands> as unknown as Commands,
    () => time,
  );
  return {
    commands,
    processes,
    talks,
    isGone: () => {
      code = 1;
    },
    pass: (ms: number) => {
      time += ms;
    },
  };
}

test('a table that a process has printed once is asked of the nft that goes on running, and its answer reads the same', async () => {
  const { commands, processes, talks } = start();
  const first = await commands.run('nft', list);
  const second = commands.run('nft', list);
  talks[0]?.handlers.line('{"by":"a process"}');
  expect(await second).toEqual(first);
  expect([processes.length, talks[0]?.written]).toEqual([1, ['list table ip isthmus']]);
});

test('that there is no terminal does not keep it from answering', async () => {
  const { commands, processes, talks } = start();
  await commands.run('nft', list);
  const answer = commands.run('nft', list);
  talks[0]?.handlers.complaint();
  talks[0]?.handlers.line('{}');
  expect([(await answer).stdout, processes.length, talks.length]).toEqual(['{}\n', 1, 1]);
});

test('answers go to their requests in order, and other output is dropped', async () => {
  const { commands, talks } = start();
  const other = [...list.slice(0, -2), 'ip6', 'isthmus'];
  await Promise.all([commands.run('nft', list), commands.run('nft', other)]);
  const both = Promise.all([commands.run('nft', list), commands.run('nft', other)]);
  for (const line of ['nft> list table ip isthmus', '{"first":1}', '{"second":2}']) talks[0]?.handlers.line(line);
  const answer = (stdout: string) => ({ code: 0, stdout, stderr: '' });
  expect(await both).toEqual([answer('{"first":1}\n'), answer('{"second":2}\n')]);
});

test('writes, and lists that are wanted otherwise, are processes of their own', async () => {
  const { commands, processes, talks } = start();
  for (let i = 0; i < 2; i++) {
    await commands.must('nft', ['-f', 'file']);
    await commands.must('nft', ['-j', 'list', 'chains']);
    await commands.run('ip', list);
  }
  expect([processes.length, talks.length]).toEqual([6, 0]);
});

test('after an error, an exit or a timeout a separate process answers, also the requests queued behind', async () => {
  const { commands, processes, talks, isGone } = start();
  await commands.run('nft', list);
  const answered = commands.run('nft', list);
  talks[0]?.handlers.line('{}');
  await answered;
  const waiting = [commands.run('nft', list), commands.run('nft', list)];
  isGone();
  talks[0]?.handlers.complaint();
  expect((await Promise.all(waiting)).map(({ code }) => code)).toEqual([1, 1]);
  expect([talks[0]?.stopped, processes.length]).toEqual([true, 3]);
  // what is not there is not asked for there
  await commands.run('nft', list);
  expect([talks.length, processes.length]).toEqual([1, 4]);

  vi.useFakeTimers();
  try {
    const silent = start();
    await silent.commands.run('nft', list);
    const late = silent.commands.run('nft', list);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await late).toMatchObject({ code: 0 });
    expect([silent.talks[0]?.stopped, silent.processes.length]).toEqual([true, 2]);
  } finally {
    vi.useRealTimers();
  }
});

test('one that never answered anything is let be for a while', async () => {
  const { commands, processes, talks, pass } = start();
  await commands.run('nft', list);
  const asked = commands.run('nft', list);
  talks[0]?.handlers.ended();
  await asked;
  await commands.run('nft', list);
  expect([talks.length, processes.length]).toEqual([1, 3]);
  pass(60_000);
  void commands.run('nft', list);
  expect(talks.length).toBe(2);
});

test('it is restarted now and then, since its memory grows with each request', async () => {
  const { commands, talks } = start();
  await commands.run('nft', list);
  for (let i = 0; i < 1_001; i++) {
    const answer = commands.run('nft', list);
    talks.at(-1)?.handlers.line('{}');
    await answer;
  }
  expect(talks.map(({ written, stopped }) => [written.length, stopped])).toEqual([
    [1_000, true],
    [1, false],
  ]);
  commands.close();
  expect(talks[1]?.stopped).toBe(true);
});
