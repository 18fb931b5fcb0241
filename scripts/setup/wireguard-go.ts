/**
 * wireguard-go as the agent's image carries it. Built here, since distributions have one of before 2023: without segmentation offload on its
 * device and sockets, which is a fifth of the throughput.
 */
import { type BuildOptions, buildGoProgram, modulesIn } from './go-program.ts';

const wireGuardGoVersion = 'v0.0.0-20260522210424-ecfc5a8d5446';

const minimumGo = '1.23.1';

const build = (options: BuildOptions, architecture?: 'arm64'): Promise<string> =>
  buildGoProgram(
    {
      name: architecture === undefined ? 'wireguard-go' : `wireguard-go-${architecture}`,
      ...(architecture !== undefined && { architecture }),
      source: { module: `golang.zx2c4.com/wireguard@${wireGuardGoVersion}` },
      flags: ['-trimpath', '-ldflags', '-s -w'],
      about: 'WireGuard of the agent image',
      expectedSeconds: 10,
      minimumGo,
    },
    options,
  );

/** For this machine. */
export const buildWireGuardGo = (options: BuildOptions = {}): Promise<string> => build(options);

export const buildWireGuardGoForArm64 = (options: BuildOptions = {}): Promise<string> => build(options, 'arm64');

/** What a binary of wireguard-go was compiled from. */
export const wireGuardGoModules = (binary: string, options: BuildOptions = {}): ReturnType<typeof modulesIn> =>
  modulesIn(binary, minimumGo, options);
