/** What is known on disk about a bed's clusters, and what of it still runs. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { ClusterSpec } from './spec.ts';

export interface ClusterRecord {
  readonly spec: ClusterSpec;
  /** `creating` found by a later run means that its maker died. */
  readonly phase: 'creating' | 'ready';
}

export const clusterDir = (bedDir: string, name: string): string => path.join(bedDir, name);
const recordFile = (bedDir: string, name: string): string => path.join(clusterDir(bedDir, name), 'cluster.json');

export function writeRecord(bedDir: string, record: ClusterRecord): void {
  const file = recordFile(bedDir, record.spec.name);
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(`${file}.partial`, `${JSON.stringify(record, null, 2)}\n`);
  renameSync(`${file}.partial`, file);
}

export function readRecords(bedDir: string): ClusterRecord[] {
  if (!existsSync(bedDir)) return [];
  const names = readdirSync(bedDir).filter((name) => existsSync(recordFile(bedDir, name)));
  return names
    .map((name) => JSON.parse(readFileSync(recordFile(bedDir, name), 'utf8')) as ClusterRecord)
    .sort((a, b) => a.spec.index - b.spec.index);
}

/** What is removed may be found written to once more by a process that is just ending. */
const patiently = { recursive: true, force: true, maxRetries: 10 } as const;

/** The record goes last: a removal that was interrupted is found, and ended, by the next one. */
export async function removeClusterDir(bedDir: string, name: string): Promise<void> {
  const dir = clusterDir(bedDir, name);
  const record = recordFile(bedDir, name);
  const others = existsSync(dir) ? readdirSync(dir).map((entry) => path.join(dir, entry)) : [];
  for (const entry of others) if (entry !== record) await rm(entry, patiently);
  await rm(dir, patiently);
}

/** Names of everything that a cluster's folder holds. */
const ofCluster =
  /^(pki|etcd|nodes|logs|kubeconfig|loopbox|kubebox|audit-policy\.json|audit[-\w.]*\.log|[a-z-]+\.conf|cluster\.json(\.partial)?)$/;

/** Folders of clusters that have no record: a part of them was deleted, or their creation was interrupted. Folders that hold anything else are not ours. */
export function unrecordedRemains(bedDir: string): string[] {
  if (!existsSync(bedDir)) return [];
  return readdirSync(bedDir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !existsSync(recordFile(bedDir, entry.name)))
    .map(({ name }) => name)
    .filter((name) => readdirSync(clusterDir(bedDir, name)).every((entry) => ofCluster.test(entry)));
}

const controlPlane = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
const everyNode = ['containerd', 'kubelet', 'kube-proxy'] as const;
export type Component = (typeof controlPlane)[number] | (typeof everyNode)[number] | 'loopbox';

/** The daemons of a node, in the order in which they start. The control plane is in the first node. */
export const componentsOf = (spec: ClusterSpec, node: string): readonly Component[] => [
  ...(spec.nodes[0]?.name === node ? controlPlane : []),
  ...everyNode,
  ...(spec.storage ? (['loopbox'] as const) : []),
];

export type Health =
  | { readonly state: 'whole' }
  /** All namespaces stand, these daemons don't: they can be started again. */
  | { readonly state: 'lame'; readonly missing: readonly { readonly node: string; readonly component: Component }[] }
  /** A node's namespaces are gone, or it was never finished: only a new one helps. */
  | { readonly state: 'broken'; readonly why: string };

/** `running`: process ids by `node/component`. */
export function assess({ spec, phase }: ClusterRecord, running: ReadonlyMap<string, number>): Health {
  const dead = spec.nodes.find(({ name }) => !running.has(`${name}/init`));
  if (dead) return { state: 'broken', why: `node ${dead.name} is gone` };
  if (phase === 'creating') return { state: 'broken', why: 'its creation was interrupted' };
  const missing = spec.nodes.flatMap(({ name }) =>
    componentsOf(spec, name)
      .filter((component) => !running.has(`${name}/${component}`))
      .map((component) => ({ node: name, component })),
  );
  return missing.length === 0 ? { state: 'whole' } : { state: 'lame', missing };
}
