/** Each generated client at a real broker: it makes a peering, pages, meets a version conflict and reads an error's code. */
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { ScriptedAgent } from '#functions/local/scripted-agent.ts';
import { openApiDocument } from '#functions/openapi.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { findGo } from '#scripts/setup/go-toolchain.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import { silentLog } from '#shared/ports/log.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type Document, sdkDocument } from './document.ts';
import { goSdk, minimumGo } from './go.ts';
import { npmTools } from './npm-tools.ts';
import { pythonSdk } from './python.ts';
import { writeSdks } from './sdk.ts';
import { typescriptSdk } from './typescript.ts';

const document = sdkDocument(openApiDocument() as unknown as Document);
const places = { root: repositoryRoot, cache: cacheDir(), log: () => undefined };
const programs = path.join(repositoryRoot, 'scripts', 'sdk', 'testing');
let dir = '';
let broker: Broker;

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-sdk-'));
  broker = await startBroker({
    dataDir: path.join(dir, 'data'),
    listen: '127.0.0.1:0',
    log: silentLog,
    version: '0.1.0',
  });
  const caller = {
    from: '127.0.0.1',
    requestId: 'sdk',
    tenant: 'default',
    principal: 'system',
    role: 'admin',
  } as const;
  for (const cluster of ['rome', 'milan', 'turin']) {
    const { token } = await broker.control.clusters.createJoinToken(caller, cluster);
    expect((await new ScriptedAgent(token, broker.caPem).enroll()).status).toBe(200);
  }
});
afterAll(async () => {
  await broker?.close();
  await rm(dir, { recursive: true, force: true });
});

const environment = (): Record<string, string> => ({
  BROKER_URL: broker.url,
  BROKER_KEY: broker.adminKey ?? '',
  BROKER_CA: broker.caFile,
  NODE_EXTRA_CA_CERTS: broker.caFile,
});

const seen = {
  names: ['milan', 'rome', 'turin'],
  etag: true,
  stale: [412, 'precondition_failed'],
  refused: [404, 'cluster_unknown'],
  unknown: true,
};
const expected = (printed: string): void => {
  const { made, ...rest } = JSON.parse(printed) as { readonly made: number };
  // The second client finds the peering of the first.
  expect([200, 202]).toContain(made);
  expect(rest).toEqual(seen);
};

test('the TypeScript package compiles a program that knows the codes of an operation, and runs it', {
  timeout: 400_000,
}, async () => {
  const [folder = ''] = await writeSdks([typescriptSdk], document, { ...places, out: path.join(dir, 'sdk') });
  expect(JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')).version).toBe(document.info.version);
  const program = path.join(dir, 'program');
  await mkdir(program);
  await writeFile(path.join(program, 'package.json'), '{"type":"module","private":true}');
  await writeFile(path.join(program, 'client.ts'), await readFile(path.join(programs, 'client.ts.txt')));
  // As from a registry: a copy, no link into the folder where it was made.
  await runCommand('npm', ['install', '--install-links', '--no-audit', '--no-fund', folder], { cwd: program });
  const { compiler } = await npmTools(places);
  const nodeTypes = path.join(repositoryRoot, 'node_modules', '@types');
  const options = [
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--typeRoots',
    nodeTypes,
    '--types',
    'node',
  ];
  await runCommand(process.execPath, [compiler, ...options, 'client.ts'], { cwd: program });
  expected(await runCommand(process.execPath, ['client.js'], { cwd: program, env: environment() }));
  const wrong = (await readFile(path.join(program, 'client.ts'), 'utf8')).replace(
    "'cluster_unknown'",
    "'weather_changed'",
  );
  await writeFile(path.join(program, 'client.ts'), wrong);
  await expect(runCommand(process.execPath, [compiler, ...options, 'client.ts'], { cwd: program })).rejects.toThrow(
    'weather_changed',
  );
});

test('the Python package installs, and does the same', { timeout: 400_000 }, async () => {
  const [folder = ''] = await writeSdks([pythonSdk], document, { ...places, out: path.join(dir, 'sdk') });
  const packages = path.join(dir, 'packages');
  // setuptools writes beside what it installs.
  await cp(folder, `${folder}-copy`, { recursive: true });
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', packages];
  await runCommand('python3', [...pip, `${folder}-copy`]);
  const env = { ...environment(), PYTHONPATH: packages };
  const version = "import importlib.metadata as m; print(m.version('isthmus-client'))";
  expect((await runCommand('python3', ['-c', version], { env })).trim()).toBe(document.info.version);
  expected(await runCommand('python3', [path.join(programs, 'client.py')], { env }));
});

test('the Go module compiles a program that knows the codes of an operation, and does the same', {
  timeout: 400_000,
}, async () => {
  const [folder = ''] = await writeSdks([goSdk], document, { ...places, out: path.join(dir, 'sdk') });
  const { command } = await findGo(cacheDir(), minimumGo, () => undefined);
  const program = path.join(dir, 'go-program');
  await mkdir(program);
  const source = await readFile(path.join(programs, 'client.go.txt'), 'utf8');
  await writeFile(path.join(program, 'main.go'), source);
  const [module, sums] = await Promise.all([
    readFile(path.join(folder, 'go.mod'), 'utf8'),
    readFile(path.join(folder, 'go.sum')),
  ]);
  const needs = `require isthmus-client v${document.info.version}\n\nreplace isthmus-client => ${folder}\n`;
  await writeFile(
    path.join(program, 'go.mod'),
    `${module.replace('module isthmus-client', 'module program')}\n${needs}`,
  );
  await writeFile(path.join(program, 'go.sum'), sums);
  const options = { cwd: program, env: { ...environment(), GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' } };
  expect(await readFile(path.join(folder, 'version.go'), 'utf8')).toContain(`Version = "${document.info.version}"`);
  expected(await runCommand(command, ['run', '.'], options));
  await writeFile(path.join(program, 'main.go'), source.replace('CodeClusterUnknown', 'CodeWeatherChanged'));
  await expect(runCommand(command, ['vet', '.'], options)).rejects.toThrow('CodeWeatherChanged');
});
