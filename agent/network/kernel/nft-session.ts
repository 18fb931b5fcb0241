/**
 * Lists tables through one long-running nft process, at a fiftieth of the cost of a process per call. Requests that the session cannot answer run in
 * a process of their own.
 */
import type { Commands, Conversation } from './commands.ts';

/** Requests per process: an interactive nft keeps its command history in memory, which grows without end. */
const mostAnswers = 1_000;
const answerMs = 1_000;
/** Pause after a session that answered nothing at all: the machine is busy, or this nft cannot run interactively. */
const restMs = 60_000;

interface Running {
  readonly conversation: Conversation;
  readonly waiting: { readonly answer: (text: string | undefined) => void; readonly timer: NodeJS.Timeout }[];
  answers: number;
}

/** As `commands`; a list that was printed once is read through the session from then on. Writes remain processes of their own. */
export function withNftSession(commands: Commands, now: () => number = () => performance.now()): Commands {
  /** Only these are read through the session: listing an absent table prints an error, and an error ends the session. */
  const printed = new Set<string>();
  let running: Running | undefined;
  let notBefore = Number.NEGATIVE_INFINITY;
  let isClosed = false;

  function start(): Running {
    const mine: Running = {
      waiting: [],
      answers: 0,
      conversation: commands.converse('nft', [...listOptions, '-i'], {
        line: (text) => receive(mine, text),
        // At its start it prints a warning about having no terminal.
        complaint: () => {
          if (mine.answers > 0) letGo(mine);
        },
        ended: () => letGo(mine),
      }),
    };
    return mine;
  }

  function receive(from: Running, text: string): void {
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
    one.conversation.stop();
    for (const { answer, timer } of one.waiting.splice(0)) {
      clearTimeout(timer);
      answer(undefined);
    }
  }

  function ask(list: string): Promise<string | undefined> {
    if (isClosed || now() < notBefore) return Promise.resolve(undefined);
    running ??= start();
    const { waiting, conversation } = running;
    return new Promise((answer) => {
      const session = running;
      const timer = setTimeout(() => session && letGo(session), answerMs);
      waiting.push({ answer, timer });
      conversation.write(list);
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

/** The request as one line for nft; undefined for anything that is no list, or that has options which the session does not support. */
function listOf(program: string, args: readonly string[]): string | undefined {
  const [json, stateless, ...words] = args;
  const isList = program === 'nft' && json === listOptions[0] && stateless === listOptions[1] && words[0] === 'list';
  return isList ? words.join(' ') : undefined;
}
