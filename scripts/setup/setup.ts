/** Makes this machine able to run every test: Debian packages, a Go toolchain, and the test bed's programs built into the cache. */
import { bedPrograms, buildLoopbox } from '#test/testbed/build.ts';
import { checkHost } from '#test/testbed/host-check.ts';
import { cacheDir } from './cache-dir.ts';
import { ensureDebianPackages, testbedPackages } from './debian-packages.ts';
import { buildInParts } from './go-program.ts';
import { buildWireGuardGo } from './wireguard-go.ts';

export interface SetUpOptions {
  readonly log: (line: string) => void;
  readonly cache?: string;
}

/** Does nothing on a machine that has everything. */
export async function setUpMachine(options: SetUpOptions): Promise<void> {
  const cache = options.cache ?? cacheDir();
  checkHost();
  await ensureDebianPackages(testbedPackages, cache, options.log);
  await buildInParts(
    { ...bedPrograms, loopbox: buildLoopbox, wireGuardGo: buildWireGuardGo },
    { cache, log: options.log },
  );
}
