/** Asks an API server whether it is ready, and waits for it with a deadline. */
import https from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '#shared/errors/app-error.ts';

export interface Access {
  readonly url: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
  /** Keeps connections; without one each request has its own. */
  readonly agent?: https.Agent;
}

export interface ApiAnswer {
  readonly status: number;
  readonly body: string;
}

/** One request. Rejects when nothing answers. */
export function callApi(access: Access, target: string, method = 'GET', body?: unknown): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
    const request = https.request(
      new URL(target, access.url),
      {
        method,
        agent: access.agent ?? false,
        ca: access.ca,
        cert: access.cert,
        key: access.key,
        timeout: 10_000,
        ...(text === undefined ? {} : { headers: { 'content-type': type, 'content-length': Buffer.byteLength(text) } }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
      },
    );
    request.on('timeout', () => request.destroy(new Error('no answer within 10 s')));
    request.on('error', reject);
    request.end(text);
  });
}

/** Polls `/readyz` until it answers 200. `alive` ends the wait early: it returns a reason when waiting became pointless. */
export async function waitUntilReady(
  access: Access,
  deadlineMs: number,
  alive: () => string | undefined,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const answer = await callApi(access, '/readyz').catch(() => undefined);
    if (answer?.status === 200) return;
    const dead = alive();
    if (dead !== undefined) throw new AppError('command_failed', dead);
    if (performance.now() > end) {
      throw new AppError(
        'deadline_exceeded',
        `the API server ${access.url} was not ready within ${deadlineMs / 1000} s: ${answer?.body ?? 'no answer'}`,
      );
    }
    await delay(50);
  }
}
