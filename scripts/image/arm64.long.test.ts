/** The image for arm64, started under qemu's user mode: versions of its programs, and a controller that becomes healthy at a real API server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureDebianTree, findInTree } from '#scripts/setup/debian-tree.ts';
import { freePort } from '#test/aws/free-port.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { must } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { buildAgentImage } from './agent-image.ts';
import { unpackImage } from './unpack-image.ts';

const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-arm64-'));
let qemu: string;
let root: string;
let server: ApiServer | undefined;
let agent: ChildProcess | undefined;
beforeAll(async () => {
  const [cache, log] = [cacheDir(), (line: string) => console.error(line)];
  // Rejects with the reason where it cannot be had.
  const tree = await ensureDebianTree({ architecture: 'amd64', packages: ['qemu-user-static'], cache, log });
  qemu = findInTree(tree, '/usr/bin/qemu-aarch64-static')?.file ?? '';
  expect(qemu, 'qemu-user-static has no qemu-aarch64-static').not.toBe('');
  const image = await buildAgentImage(repositoryRoot, { architectures: ['arm64'], cache, log });
  ({ root } = await unpackImage(image.tarPath, 'arm64', scratch));
}, 900_000);
afterAll(async () => {
  agent?.kill('SIGKILL');
  await server?.stop();
  rmSync(scratch, { recursive: true, force: true });
});

/** Libraries are looked for in the image first. */
const inImage = (program: string, ...args: readonly string[]): readonly string[] => [
  '-L',
  root,
  path.join(root, program),
  ...args,
];

test.each([
  { program: 'usr/sbin/ip', args: ['-V'] },
  { program: 'usr/sbin/wg', args: ['--version'] },
  { program: 'usr/sbin/wireguard-go', args: ['--version'] },
  { program: 'usr/sbin/ping', args: ['-V'] },
  { program: 'usr/sbin/sysctl', args: ['--version'] },
  { program: 'usr/sbin/nsenter', args: ['--version'] },
])('runs $program', async ({ program, args }) => {
  await must(qemu, inImage(program, ...args));
});

test.each(['main.mjs', 'fabric.mjs'])('tells the version of %s', async (file) => {
  const { stdout } = await must(qemu, inImage('usr/local/bin/node', path.join(root, 'app', file), 'version'));
  expect(stdout.trim()).toMatch(/^\d+\.\d+\.\d+/);
});

test('becomes healthy and ready at an API server', { timeout: 600_000 }, async () => {
  server = await leaseApiServer();
  const kubeconfig = ['--kubeconfig', server.kubeconfigPath];
  await must(server.kubebox, ['kubectl', ...kubeconfig, 'create', 'namespace', 'liqo']);
  const [health, webhooks] = [await freePort(), await freePort()];
  const printed: string[] = [];
  agent = spawn(qemu, inImage('usr/local/bin/node', path.join(root, 'app/main.mjs'), 'controller'), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ISTHMUS_CLUSTER_ID: 'rome',
      ISTHMUS_API_SERVER_URL: server.url,
      ISTHMUS_KUBECONFIG: server.kubeconfigPath,
      ISTHMUS_HEALTH_HOST: '127.0.0.1',
      ISTHMUS_HEALTH_PORT: String(health),
      ISTHMUS_LISTEN_HOST: '127.0.0.1',
      ISTHMUS_WEBHOOK_PORT: String(webhooks),
      POD_NAME: 'agent-arm64',
    },
  });
  for (const stream of [agent.stdout, agent.stderr]) stream?.on('data', (text: Buffer) => printed.push(String(text)));
  const ask = async (what: string): Promise<boolean> => (await fetch(`http://127.0.0.1:${health}/${what}`)).ok;
  for (const what of ['healthz', 'readyz']) {
    await eventually(`/${what} of the agent for arm64`, () => ask(what), { withinMs: 240_000, everyMs: 500 }).catch(
      (error: Error) => {
        throw new Error(`${error.message}\n${printed.join('').slice(-2_000)}`);
      },
    );
  }
});
