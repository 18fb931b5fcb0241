/** AWS's own matcher of event patterns, in a process of its own for the length of a test file. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { shortLived } from './java-flags.ts';

export interface EventRuler {
  /** Rejects when the pattern is one that EventBridge would refuse. */
  matches(event: unknown, pattern: unknown): Promise<boolean>;
  stop(): Promise<void>;
}

export async function startEventRuler(): Promise<EventRuler> {
  const { java, jars } = await ensureAwsCounterparts({ root: repositoryRoot, cache: cacheDir(), log: () => undefined });
  const child = spawn(java, [...shortLived, '-Xmx128m', '-cp', jars, 'Matcher'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const requested: { readonly resolve: (line: string) => void; readonly reject: (error: Error) => void }[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => requested.shift()?.resolve(line));
  const ended = new Promise<void>((resolve) => {
    child.once('close', (code) => {
      for (const { reject } of requested.splice(0)) reject(new Error(`the matcher ended with ${code}`));
      resolve();
    });
  });
  return {
    async matches(event, pattern) {
      const answer = await new Promise<string>((resolve, reject) => {
        requested.push({ resolve, reject });
        child.stdin.write(`${JSON.stringify({ event, pattern })}\n`);
      });
      if (answer !== 'true' && answer !== 'false') throw new Error(answer);
      return answer === 'true';
    },
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}
