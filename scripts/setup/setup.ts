/** Makes this machine able to run every test: Debian packages, a Go toolchain, and the test bed's programs built into the cache. */
import { bedPrograms, buildLoopbox } from '#test/testbed/build.ts';
import { checkHost } from '#test/testbed/host-check.ts';
import { cacheDir } from './cache-dir.ts';
import { ensureDebianPackages, testbedPackages } from './debian-packages.ts';
import { type BuildOptions, buildInParts } from './go-program.ts';
import { buildWireGuardGo } from './wireguard-go.ts';

export interface SetUpOptions {
  readonly log: (line: string) => void;
  readonly cache?: string;
  /** Programs besides those of the test bed, by name: parts of the same count. */
  readonly also?: Readonly<Record<string, (options: BuildOptions) => Promise<string>>>;
}

/** Does nothing on a machine that has everything. */
export async function setUpMachine(options: SetUpOptions): Promise<void> {
  const cache = options.cache ?? cacheDir();
  checkHost();
  await ensureDebianPackages(testbedPackages, cache, options.log);
  await buildInParts(
    { ...bedPrograms, loopbox: buildLoopbox, wireGuardGo: buildWireGuardGo, ...options.also },
    { cache, log: options.log },
  );
}
