/** What Node has warned of in the processes of a world: in pods of ours that are still there, and in the broker. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { clusterDir, readRecords } from '#test/testbed/cluster-state.ts';
import { runtimeWarnings } from './runtime-warnings.ts';

const logsBelow = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.log'))
    .map((name) => path.join(dir, name));

/** Log files of containers in namespaces of ours, by the folders that the kubelet makes: NAMESPACE_POD_UID. */
export function ownLogs(bedDir: string): string[] {
  return readRecords(bedDir).flatMap(({ spec }) =>
    spec.nodes.flatMap(({ name }) => {
      const pods = path.join(clusterDir(bedDir, spec.name), 'nodes', name, 'var', 'log', 'pods');
      const own = existsSync(pods) ? readdirSync(pods).filter((folder) => /^liqo(-tenant-[^_]+)?_/.test(folder)) : [];
      return own.flatMap((folder) => logsBelow(path.join(pods, folder)));
    }),
  );
}

/** Each with the file that has it. */
export const warningsIn = (files: readonly string[]): readonly string[] =>
  files
    .filter((file) => existsSync(file))
    .flatMap((file) => runtimeWarnings(readFileSync(file, 'utf8')).map((warning) => `${file}: ${warning}`));
