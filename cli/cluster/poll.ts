/** Asking a cluster, or the broker, again and again until a condition holds. */
import type { CliIo } from '#cli/output/io.ts';
import type { AppError } from '#shared/errors/app-error.ts';

const lookAgainMs = 250;

/** `ask` until it answers; fails with `deadline_exceeded` in the words of `late`. */
export async function poll<T>(
  io: Pick<CliIo, 'clock' | 'signal'>,
  timeoutMs: number,
  ask: () => Promise<T | undefined>,
  late: () => AppError,
): Promise<T> {
  const deadline = io.clock.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (io.clock.now() >= deadline) throw late();
    await io.clock.sleep(lookAgainMs, io.signal);
  }
}
