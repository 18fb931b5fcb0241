/** Makes this machine able to run every test: Debian packages, a Go toolchain, and the test bed's programs built into the cache. */
import { bedPrograms, buildLoopbox } from '#test/testbed/build.ts';
import { checkHost } from '#test/testbed/host-check.ts';
import { cacheDir } from './cache-dir.ts';
import { type DebianPackage, ensureDebianPackages, testbedPackages } from './debian-packages.ts';
import { type BuildOptions, buildInParts } from './go-program.ts';
import { buildWireGuardGo } from './wireguard-go.ts';

export interface SetUpOptions {
  readonly log: (line: string) => void;
  /** Besides what the test bed needs. */
  readonly also?: {
    readonly packages: readonly DebianPackage[];
    /** By name: parts of the same count. */
    readonly programs: Readonly<Record<string, (options: BuildOptions) => Promise<string>>>;
  };
}

/** Does nothing on a machine that has everything. */
export async function setUpMachine(options: SetUpOptions): Promise<void> {
  const { log, also = { packages: [], programs: {} } } = options;
  const cache = cacheDir();
  checkHost();
  // In one go: apt reads its lists once.
  await ensureDebianPackages([...testbedPackages, ...also.packages], cache, log);
  await buildInParts(
    { ...bedPrograms, loopbox: buildLoopbox, wireGuardGo: buildWireGuardGo, ...also.programs },
    { cache, log },
  );
}
