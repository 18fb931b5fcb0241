/** What can be seen of a node's CNI from this process, which is in the node's network. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { CniEvidence } from './cni.ts';

/** `directory`: where containerd looks, often /etc/cni/net.d. What cannot be read says nothing. */
export const readCniEvidence = (directory: string, root = '/proc/self'): CniEvidence => ({
  configurations: orElse({}, () =>
    Object.fromEntries(
      readdirSync(directory)
        .filter((name) => /\.(conf|conflist|json)$/.test(name))
        .map((name) => [name, readFileSync(path.join(directory, name), 'utf8')]),
    ),
  ),
  daemonSets: [],
  devices: orElse([], () =>
    readFileSync(path.join(root, 'net', 'dev'), 'utf8')
      .split('\n')
      .flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []),
  ),
});

function orElse<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
