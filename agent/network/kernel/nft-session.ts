/**
 * Asks one nft that goes on running what tables there are: it answers in a fiftieth of what a process of its own costs us. What it does not
 * answer is asked as ever.
 */
import type { Commands, Conversation } from './commands.ts';

/** It remembers all that it was told, as if a person might want to say it again. */
const mostAnswers = 1_000;
const answerMs = 1_000;
/** After one that answered nothing at all: the machine is busy, or it is not made for this. */
const restMs = 60_000;

interface Running {
  readonly talk: Conversation;
  readonly waiting: { readonly answer: (text: string | undefined) => void; readonly timer: NodeJS.Timeout }[];
  answers: number;
}

/** As `commands`; a list that was printed once is asked for there the next time. Writes are processes of their own, as before. */
export function withNftSession(commands: Commands, now: () => number = () => performance.now()): Commands {
  /** Only these: what is not there is a complaint, and who complains is let go. */
  const printed = new Set<string>();
  let running: Running | undefined;
  let notBefore = Number.NEGATIVE_INFINITY;
  let isClosed = false;

  function start(): Running {
    const mine: Running = {
      waiting: [],
      answers: 0,
      talk: commands.converse('nft', [...listOptions, '-i'], {
        line: (text) => hear(mine, text),
        // As it begins it complains of having no terminal.
        complaint: () => {
          if (mine.answers > 0) letGo(mine);
        },
        ended: () => letGo(mine),
      }),
    };
    return mine;
  }

  function hear(from: Running, text: string): void {
    if (!text.startsWith('{')) return;
    const first = from.waiting.shift();
    if (first === undefined) return;
    clearTimeout(first.timer);
    from.answers += 1;
    first.answer(`${text}\n`);
    if (from.answers >= mostAnswers && from.waiting.length === 0) letGo(from);
  }

  function letGo(one: Running): void {
    if (running === one) running = undefined;
    if (one.answers === 0) notBefore = now() + restMs;
    one.talk.stop();
    for (const { answer, timer } of one.waiting.splice(0)) {
      clearTimeout(timer);
      answer(undefined);
    }
  }

  function ask(list: string): Promise<string | undefined> {
    if (isClosed || now() < notBefore) return Promise.resolve(undefined);
    running ??= start();
    const { waiting, talk } = running;
    return new Promise((answer) => {
      const asked = running;
      const timer = setTimeout(() => asked && letGo(asked), answerMs);
      waiting.push({ answer, timer });
      talk.say(list);
    });
  }

  return {
    ...commands,
    async run(program, args) {
      const list = listOf(program, args);
      if (list === undefined) return commands.run(program, args);
      const stdout = printed.has(list) ? await ask(list) : undefined;
      if (stdout !== undefined) return { code: 0, stdout, stderr: '' };
      printed.delete(list);
      const ended = await commands.run(program, args);
      if (ended.code === 0) printed.add(list);
      return ended;
    },
    close() {
      isClosed = true;
      if (running !== undefined) letGo(running);
      commands.close();
    },
  };
}

const listOptions = ['-j', '-s'] as const;

/** What nft takes as a line of its own; undefined for anything that is no list, or is wanted otherwise. */
function listOf(program: string, args: readonly string[]): string | undefined {
  const [json, stateless, ...words] = args;
  const isList = program === 'nft' && json === listOptions[0] && stateless === listOptions[1] && words[0] === 'list';
  return isList ? words.join(' ') : undefined;
}
