/** Runs a program in a container, as `kubectl exec` does. */
import { Writable } from 'node:stream';
import { AppError } from '#shared/errors/app-error.ts';
import { type KubeTarget, loadKubeconfig } from './kubeconfig-files.ts';

export interface ExecRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  /** Called for each whole line of standard output. */
  readonly onLine: (line: string) => void;
  readonly signal: AbortSignal;
}

/** Resolves when the program has ended with 0; rejects with what it said otherwise, and when `signal` aborts. */
export async function podExec(
  target: KubeTarget,
  { namespace, pod, container, ...request }: ExecRequest,
): Promise<void> {
  const { command, onLine, signal } = request;
  const { text, context } = await loadKubeconfig(target);
  // Loaded late: it is the heaviest import of the command line, and no other command needs it.
  const { Exec, KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromString(text);
  config.setCurrentContext(context);
  const failed = (why: string, cause?: unknown) =>
    new AppError('kube_failed', `${command.slice(0, 3).join(' ')} in pod ${namespace}/${pod}: ${why}`, { cause });
  const out = lines(onLine);
  let message = '';
  const errors = new Writable({
    write(chunk: Buffer, _encoding, done) {
      message = `${message}${chunk.toString()}`.slice(-2_000);
      done();
    },
  });
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const started = new Exec(config).exec(
      namespace,
      pod,
      container,
      [...command],
      out,
      errors,
      null,
      false,
      (status) => {
        if (status.status === 'Success') resolve();
        else reject(failed(`${status.message ?? 'failed'} ${message}`.trim()));
      },
    );
    started.then(
      (socket) => {
        const abort = (): void => {
          socket.close();
          reject(signal.reason);
        };
        signal.addEventListener('abort', abort, { once: true });
        if (signal.aborted) abort();
        socket.onclose = () => {
          signal.removeEventListener('abort', abort);
          // After its status, if one came: then this changes nothing.
          reject(failed('the connection ended before the program did'));
        };
      },
      (cause: unknown) =>
        reject(failed(cause instanceof Error ? cause.message : 'the API server did not let us', cause)),
    );
  });
}

function lines(onLine: (line: string) => void): Writable {
  let rest = '';
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      const parts = `${rest}${chunk.toString()}`.split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) onLine(line);
      done();
    },
  });
}
