/** `width` at a time; rejects when all that began have ended and one of them rejected. */
export async function inParallel<T>(all: readonly T[], width: number, work: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  const worker = async (): Promise<void> => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) await work(one);
  };
  const ended = await Promise.allSettled(Array.from({ length: Math.min(width, all.length) }, worker));
  const failed = ended.find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
}
