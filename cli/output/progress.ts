/**
 * What a command is waiting for, with elapsed seconds. On a terminal the running step is one line that is rewritten; elsewhere each news is
 * one plain line. Goes to stderr, so that stdout stays for results.
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
      out.write(`${stamp()} ${text}\n`);
    },
    step(title) {
      let news = '';
      let ended = false;
      const line = () => (news === '' ? title : `${title}: ${news}`);
      const draw = () => out.write(`\r\x1b[2K${stamp()} ${paint('wait', '•')} ${clip(line())}`);
      const timer = live ? setInterval(draw, redrawMs) : undefined;
      timer?.unref();
      if (live) draw();
      else out.write(`${stamp()} ${title}\n`);

      const end = (mark: string, last: string | undefined) => {
        if (ended) return;
        ended = true;
        clearInterval(timer);
        if (last !== undefined) news = last;
        out.write(live ? `\r\x1b[2K${stamp()} ${mark} ${line()}\n` : `${stamp()} ${mark} ${line()}\n`);
      };
      return {
        update(latest) {
          if (ended || latest === news) return;
          news = latest;
          if (live) draw();
          else out.write(`${stamp()} ${line()}\n`);
        },
        done: (last) => end(paint('good', live ? '✓' : 'ok'), last),
        fail: (last) => end(paint('bad', live ? '✗' : 'failed'), last),
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
