/** A containerd of its own for tests of images: no pods, nothing mounted that outlives it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { eventually } from './eventually.ts';
import { must, startTied } from './program.ts';

export interface TestContainerd {
  /** In the namespace of Kubernetes; resolves with what it printed. */
  ctr(...args: readonly string[]): Promise<string>;
  stop(): Promise<void>;
}

export async function startContainerd(): Promise<TestContainerd> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-containerd-'));
  const socket = path.join(dir, 'socket');
  const unneeded = ['grpc.v1.cri', 'snapshotter.v1.aufs', 'snapshotter.v1.btrfs', 'snapshotter.v1.devmapper'].concat([
    'snapshotter.v1.zfs',
    'internal.v1.opt',
    'tracing.processor.v1.otlp',
    'internal.v1.tracing',
  ]);
  const settings = `version = 2
root = "${dir}/root"
state = "${dir}/state"
disabled_plugins = ${JSON.stringify(unneeded.map((name) => `io.containerd.${name}`))}
[grpc]
  address = "${socket}"
[ttrpc]
  address = "${dir}/ttrpc"
`;
  writeFileSync(path.join(dir, 'config.toml'), settings);
  const running = startTied('containerd', ['--config', path.join(dir, 'config.toml')], path.join(dir, 'log'));
  const ctr = async (...what: readonly string[]): Promise<string> =>
    (await must('ctr', ['--address', socket, '--namespace', 'k8s.io', ...what])).stdout;
  await eventually('containerd to answer', async () => (await ctr('version')) !== '');
  return {
    ctr,
    async stop() {
      await running.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
