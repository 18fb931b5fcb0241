/** What a fault of the drill is, and the few ways in which most of them are made and undone. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { CauseCode } from '#cli/doctor/causes.ts';
import { eventually } from '#test/harness/eventually.ts';
import { type ClusterName, reported, type Stage } from '../whole-clusters/stage.ts';

export interface DrillGround {
  readonly stage: Stage;
  /** For files of the drill. */
  readonly dir: string;
  /** In rome, offloaded with strategy Remote; a Deployment `web` of it runs in milan. */
  readonly namespace: string;
  kubeconfig(cluster: ClusterName): string;
}

type Undo = () => Promise<void>;

/** What differs from `isthmus doctor rome milan` with both kubeconfigs, without probes. */
export interface Asking {
  readonly probe?: boolean;
  /** In place of a cluster's own. */
  readonly kubeconfigs?: Partial<Record<ClusterName, string>>;
  /** Of the machine that asks. */
  readonly clockAheadMs?: number;
}

export interface Fault {
  /** As the table has it. */
  readonly what: string;
  readonly says: CauseCode;
  inject(ground: DrillGround): Promise<{ readonly undo: Undo; readonly asking?: Asking }>;
}

export async function must(ground: DrillGround, cluster: ClusterName, ...args: readonly string[]): Promise<string> {
  const ended = await ground.stage.kubectl(cluster, args);
  if (ended.code !== 0) throw new Error(`kubectl ${args.join(' ')} in ${cluster}: ${reported(ended)}`);
  return ended.stdout;
}

/** As often as it takes: while webhooks are away, some writes are refused. */
export async function insist(ground: DrillGround, cluster: ClusterName, ...args: readonly string[]): Promise<void> {
  await eventually(`kubectl ${args.join(' ')}`, async () => (await must(ground, cluster, ...args)) !== undefined, {
    withinMs: 60_000,
    everyMs: 500,
  });
}

interface Live {
  readonly metadata: Record<string, unknown>;
  readonly status?: unknown;
  readonly [field: string]: unknown;
}

/** As it would be made again. */
async function saved(ground: DrillGround, cluster: ClusterName, ...what: readonly string[]): Promise<string> {
  const { status: _, ...object } = JSON.parse(await must(ground, cluster, 'get', ...what, '-o', 'json')) as Live;
  const {
    uid: _u,
    resourceVersion: _r,
    creationTimestamp: _c,
    managedFields: _m,
    generation: _g,
    ...metadata
  } = object.metadata;
  return JSON.stringify({ ...object, metadata });
}

async function make(ground: DrillGround, cluster: ClusterName, manifest: string): Promise<void> {
  const file = path.join(ground.dir, `made-${cluster}.json`);
  writeFileSync(file, manifest);
  await insist(ground, cluster, 'apply', '--server-side', '--force-conflicts', '-f', file);
}

/** Deletes an object, and makes it again. */
export const without =
  (cluster: ClusterName, ...what: readonly string[]): Fault['inject'] =>
  async (ground) => {
    const manifest = await saved(ground, cluster, ...what);
    await must(ground, cluster, 'delete', ...what, '--wait=false');
    return { undo: () => make(ground, cluster, manifest) };
  };

/** Makes objects, and deletes them. */
export const having =
  (cluster: ClusterName, ...objects: readonly object[]): Fault['inject'] =>
  async (ground) => {
    const manifest = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
    await make(ground, cluster, manifest);
    const file = path.join(ground.dir, `made-${cluster}-${Math.trunc(process.uptime() * 1_000)}.json`);
    writeFileSync(file, manifest);
    return { undo: () => insist(ground, cluster, 'delete', '--ignore-not-found', '--wait=false', '-f', file) };
  };

/** A JSON patch, and what it replaced put back. `what`: kind and name, with `-n NAMESPACE` where there is one. */
export const changed =
  (
    cluster: ClusterName,
    what: readonly string[],
    patch: object,
    back: object,
    type: 'merge' | 'json' | 'strategic' = 'merge',
  ): Fault['inject'] =>
  async (ground) => {
    await must(ground, cluster, 'patch', ...what, '--type', type, '-p', JSON.stringify(patch));
    return { undo: () => insist(ground, cluster, 'patch', ...what, '--type', type, '-p', JSON.stringify(back)) };
  };

/** One fault after another, undone the other way round. */
export const both =
  (...all: readonly Fault['inject'][]): Fault['inject'] =>
  async (ground) => {
    const undos: Undo[] = [];
    for (const inject of all) undos.unshift((await inject(ground)).undo);
    return {
      async undo() {
        for (const undo of undos) await undo();
      },
    };
  };

/** Done once, with nothing to undo. */
export const doing =
  (cluster: ClusterName, ...args: readonly string[]): Fault['inject'] =>
  async (ground) => {
    await must(ground, cluster, ...args);
    return { undo: async () => undefined };
  };
