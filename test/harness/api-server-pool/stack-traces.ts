/** Stack traces in the process that runs the pool: they can be read also for modules that vitest has in its cache. */
type PrepareStackTrace = NonNullable<typeof Error.prepareStackTrace>;

/**
 * Makes reading the stack of an error safe in the process that runs the pool. vitest 4.1 hands its vite runner the text of a cached module as a Buffer, and
 * the stack trace mapper of vite throws on that: any error that passed a module of the pool, such as a request that was cut off, ended the whole run with code 1
 * and no failed test, since `node:stream` reads `stack`. vitest 5 reads a string. A trace that cannot be mapped names the lines that node ran.
 */
export function guardStackTraces(): void {
  const mapped = Error.prepareStackTrace;
  if (mapped === undefined) return;
  const guarded: PrepareStackTrace = (error, frames) => {
    try {
      return mapped(error, frames) as unknown;
    } catch {
      return [String(error), ...frames.map((frame) => `    at ${frame}`)].join('\n');
    }
  };
  Error.prepareStackTrace = guarded;
}
