/** What is known on disk about a bed's clusters, and what of it still runs. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
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

const controlPlane = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
const everyNode = ['containerd', 'kubelet', 'kube-proxy'] as const;
export type Component = (typeof controlPlane)[number] | (typeof everyNode)[number];

/** The daemons of a node, in the order in which they start. The control plane is in the first node. */
export const componentsOf = (spec: ClusterSpec, node: string): readonly Component[] =>
  spec.nodes[0]?.name === node ? [...controlPlane, ...everyNode] : everyNode;

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
