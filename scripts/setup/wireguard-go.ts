/**
 * wireguard-go as the agent's image carries it. Built here, since distributions have one of before 2023: without segmentation offload on its
 * device and sockets, which is a fifth of the throughput.
 */
import { type BuildOptions, buildGoProgram } from './go-program.ts';

const version = 'v0.0.0-20260522210424-ecfc5a8d5446';

export const buildWireGuardGo = (options: BuildOptions = {}): Promise<string> =>
  buildGoProgram(
    {
      name: 'wireguard-go',
      source: { module: `golang.zx2c4.com/wireguard@${version}` },
      flags: ['-trimpath', '-ldflags', '-s -w'],
      about: 'WireGuard of the agent image',
      expectedSeconds: 10,
      minimumGo: '1.23.1',
    },
    options,
  );
