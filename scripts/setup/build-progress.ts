/** What a long build says meanwhile: which part of how many, for how long, and how long it takes: one changing line on a terminal, a line every 30 s elsewhere. */
import { availableParallelism } from 'node:os';

export interface BuildPart {
  /** For example `kubebox (Kubernetes and etcd)`. */
  readonly what: string;
  /** Absent: it is built for itself. */
  readonly place?: { readonly number: number; readonly of: number };
  /** On two cores, with nothing in Go's own caches. */
  readonly expectedSeconds: number;
}

interface Screen {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface BuildProgressPorts {
  readonly log: (line: string) => void;
  /** Where the changing line is drawn, when it is a terminal. */
  readonly screen: Screen;
  readonly now: () => number;
  /** Returns what stops it. */
  readonly every: (ms: number, tick: () => void) => () => void;
  readonly cores: number;
}

export const systemPorts = (log: (line: string) => void): BuildProgressPorts => ({
  log,
  screen: process.stderr,
  now: () => performance.now(),
  every: (ms, tick) => {
    const timer = setInterval(tick, ms);
    return () => clearInterval(timer);
  },
  cores: availableParallelism(),
});

const [redrawMs, lineMs] = [1_000, 30_000];

/** `45 s`, `2 min 30 s`, `6 min`. */
export function timeText(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  return `${Math.floor(whole / 60)} min${whole % 60 === 0 ? '' : ` ${whole % 60} s`}`;
}

/** Compiling scales with the cores, downloading and linking do not. In steps of a minute from two minutes on, of five seconds below. */
export function expectedOn(cores: number, expectedSeconds: number): number {
  const seconds = expectedSeconds * Math.max(0.25, Math.min(2, 2 / cores));
  const unit = seconds >= 120 ? 60 : 5;
  return Math.max(unit, Math.round(seconds / unit) * unit);
}

/** Calls `work` with a function that takes what it has just done, for example a package that is compiled. */
export async function watchBuild<T>(
  { what, place, expectedSeconds }: BuildPart,
  { log, screen, now, every, cores }: BuildProgressPorts,
  work: (compiled: (packages: number) => void) => Promise<T>,
): Promise<T> {
  const startedAt = now();
  const title = place === undefined ? `building ${what}` : `part ${place.number} of ${place.of}: building ${what}`;
  const expected = `about ${timeText(expectedOn(cores, expectedSeconds))}`;
  let packages = 0;
  const elapsed = () => timeText((now() - startedAt) / 1_000);
  const line = () => `${title}: ${elapsed()} of ${expected}, ${packages} packages compiled`;
  const live = screen.isTTY === true;
  const width = (screen.columns ?? 80) - 1;
  const draw = () => screen.write(`\r\x1b[2K${line().slice(0, width)}`);
  if (live) draw();
  else log(`${title}, ${expected}`);
  const stop = every(live ? redrawMs : lineMs, () => (live ? draw() : log(line())));
  try {
    const result = await work((more) => {
      packages += more;
    });
    if (live) screen.write('\r\x1b[2K');
    log(`${title}: done in ${elapsed()}`);
    return result;
  } catch (error) {
    if (live) screen.write('\r\x1b[2K');
    log(`${title}: failed after ${elapsed()}`);
    throw error;
  } finally {
    stop();
  }
}
