/** What the demo runs in clusters of the user's own, where the agent's image is the only one. */
import { Script } from 'node:vm';
import { expect, test } from 'vitest';
import { workloadOfAgent } from './workload.ts';

test("each container of the agent's image runs a script that Node can read", () => {
  const { serve, sleep, get } = workloadOfAgent('isthmus.dev/agent:1');
  for (const command of [serve.command, sleep.command, get('http://10.0.0.1/')]) {
    expect(command?.slice(0, 2)).toEqual(['/usr/local/bin/node', '-e']);
    expect(() => new Script(command?.[2] ?? '')).not.toThrow();
  }
});
