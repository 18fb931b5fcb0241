/** What can be seen of a node's CNI from this process, which is in the node's network. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { CniEvidence } from './cni.ts';

/** Where container runtimes look: k3s and RKE2, MicroK8s, and OpenShift's Multus have folders of their own; the last is everyone else's. */
export const cniFolders = [
  '/var/lib/rancher/k3s/agent/etc/cni/net.d',
  '/var/lib/rancher/rke2/agent/etc/cni/net.d',
  '/var/snap/microk8s/current/args/cni-network',
  '/etc/cni/net.d',
  '/etc/cni/multus/net.d',
] as const;

/** `directories`: the first that has a configuration counts. What cannot be read says nothing. */
export const readCniEvidence = (directories: readonly string[], root = '/proc/self'): CniEvidence => ({
  configurations: directories.map(configurationsIn).find((found) => Object.keys(found).length > 0) ?? {},
  daemonSets: [],
  devices: orElse([], () =>
    readFileSync(path.join(root, 'net', 'dev'), 'utf8')
      .split('\n')
      .flatMap((line) => /^\s*([^\s:]+):/.exec(line)?.[1] ?? []),
  ),
});

const configurationsIn = (directory: string): Record<string, string> =>
  orElse({}, () =>
    Object.fromEntries(
      readdirSync(directory)
        .filter((name) => /\.(conf|conflist|json)$/.test(name))
        .map((name) => [name, readFileSync(path.join(directory, name), 'utf8')]),
    ),
  );

function orElse<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
