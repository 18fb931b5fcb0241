/** A container registry for tests: the CNCF's distribution, a real process on loopback, asking for a password unless told. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type BuildOptions, buildGoProgram } from '#scripts/setup/go-program.ts';
import { eventually } from './eventually.ts';
import { startTied } from './program.ts';

export interface TestRegistry {
  /** HOST:PORT, plain HTTP. */
  readonly host: string;
  /** In the form of docker's `config.json`. */
  readonly configFile: string;
  /** Everything that it logged. */
  log(): string;
  stop(): Promise<void>;
}

export const registryLogin = { username: 'porter', password: 'open sesame' } as const;
/** The password, by bcrypt. */
const passwordFile = 'porter:$2b$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy\n';

interface Built {
  readonly name: string;
  readonly module: string;
  readonly about: string;
  readonly expectedSeconds: number;
}

const builder =
  ({ name, module, about, expectedSeconds }: Built) =>
  (options: BuildOptions): Promise<string> => {
    const flags = ['-trimpath', '-ldflags', '-s -w'];
    return buildGoProgram({ name, source: { module }, flags, about, expectedSeconds, minimumGo: '1.25.0' }, options);
  };

export const buildRegistry = builder({
  name: 'registry',
  module: 'github.com/distribution/distribution/v3/cmd/registry@v3.1.2',
  about: 'a container registry for tests',
  expectedSeconds: 120,
});

/** Verifies signatures as users do. */
export const buildCosign = builder({
  name: 'cosign',
  module: 'github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5',
  about: 'verifies signatures of images',
  expectedSeconds: 300,
});

export async function startRegistry(): Promise<TestRegistry> {
  const program = await buildRegistry({ log: (line) => console.error(line) });
  const dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-registry-'));
  const file = (name: string, content: string): string => {
    writeFileSync(path.join(dir, name), content, { mode: 0o600 });
    return path.join(dir, name);
  };
  const settings = {
    version: 0.1,
    log: { level: 'info' },
    storage: { filesystem: { rootdirectory: path.join(dir, 'data') } },
    http: { addr: '127.0.0.1:0' },
    auth: { htpasswd: { realm: 'test', path: file('htpasswd', passwordFile) } },
  };
  const logFile = path.join(dir, 'log');
  const running = startTied(program, ['serve', file('config.yml', JSON.stringify(settings))], logFile);
  const host = await eventually(
    'the registry to listen',
    () => /listening on (127\.0\.0\.1:\d+)/.exec(readFileSync(logFile, 'utf8'))?.[1],
  );
  const auth = Buffer.from(`${registryLogin.username}:${registryLogin.password}`).toString('base64');
  const configFile = file('config.json', JSON.stringify({ auths: { [host]: { auth } } }));
  return {
    host,
    configFile,
    log: () => readFileSync(logFile, 'utf8'),
    async stop() {
      await running.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
