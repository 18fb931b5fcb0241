/**
 * What a command is waiting for, with elapsed seconds. On a terminal the running step is one line that is rewritten; elsewhere news are plain
 * lines, the latest every few seconds. Goes to stderr, so that stdout stays for results.
 */
import { elapsed } from './duration.ts';
import type { CliIo } from './io.ts';
import { paintFor } from './style.ts';

export interface Step {
  /** What it waits for right now; the same news twice is said once. */
  update(news: string): void;
  done(news?: string): void;
  fail(news?: string): void;
}

export interface Progress {
  step(title: string): Step;
  /** A line of its own between steps. */
  note(text: string): void;
}

const redrawMs = 250;
/** Between two lines of a step where there is no terminal. */
export const lineMs = 3_000;

export function createProgress(io: CliIo): Progress {
  const out = io.stderr;
  const live = out.isTTY === true && io.env.TERM !== 'dumb';
  const paint = paintFor(out, io.env);
  const startedAt = io.clock.now();
  const stamp = () => paint('faint', `[${elapsed(io.clock.now() - startedAt).padStart(6)}]`);
  const clip = (text: string) => {
    const width = (out.columns ?? 80) - 12;
    return text.length > width ? `${text.slice(0, Math.max(width - 1, 1))}…` : text;
  };

  return {
    note(text) {
      out.write(`${live ? '\r\x1b[2K' : ''}${stamp()} ${text}\n`);
    },
    step(title) {
      let news = '';
      let saidAt = io.clock.now();
      const end = new AbortController();
      let pending = false;
      let ended = false;
      const line = () => (news === '' ? title : `${title}: ${news}`);
      const draw = () => out.write(`\r\x1b[2K${stamp()} ${paint('wait', '•')} ${clip(line())}`);
      const timer = live ? setInterval(draw, redrawMs) : undefined;
      timer?.unref();
      if (live) draw();
      else out.write(`${stamp()} ${title}\n`);

      const say = () => {
        saidAt = io.clock.now();
        out.write(`${stamp()} ${line()}\n`);
      };
      /** The latest news when it is time again, unless the step ends before. */
      const sayLater = (): void => {
        if (pending) return;
        pending = true;
        io.clock
          .sleep(saidAt + lineMs - io.clock.now(), end.signal)
          .then(() => {
            pending = false;
            if (!ended) say();
          })
          .catch(() => undefined);
      };

      const finish = (mark: string, last: string | undefined) => {
        if (ended) return;
        ended = true;
        clearInterval(timer);
        end.abort();
        if (last !== undefined) news = last;
        out.write(live ? `\r\x1b[2K${stamp()} ${mark} ${line()}\n` : `${stamp()} ${mark} ${line()}\n`);
      };
      return {
        update(latest) {
          if (ended || latest === news) return;
          news = latest;
          if (live) draw();
          else if (io.clock.now() - saidAt >= lineMs) say();
          else sayLater();
        },
        done: (last) => finish(paint('good', live ? '✓' : 'ok'), last),
        fail: (last) => finish(paint('bad', live ? '✗' : 'failed'), last),
      };
    },
  };
}

/** Runs one step: marks it done, or failed when `work` throws. */
export async function during<T>(progress: Progress, title: string, work: (step: Step) => Promise<T>): Promise<T> {
  const step = progress.step(title);
  try {
    const result = await work(step);
    step.done();
    return result;
  } catch (error) {
    step.fail();
    throw error;
  }
}
