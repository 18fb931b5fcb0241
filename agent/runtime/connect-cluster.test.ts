import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { createConnectCluster } from './connect-cluster.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-peer-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a writer of a kubeconfig Secret cannot make the agent run a program', async () => {
  const connect = createConnectCluster({ clock: systemClock, log: silentLog });
  const traces = path.join(folder, 'traces');
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'touch', args: [traces] };
  const kubeconfig = JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'https://192.0.2.1' } }],
    users: [{ name: 'x', user: { exec: { ...exec, interactiveMode: 'Never' } } }],
  });
  await expect(connect(kubeconfig, new AbortController().signal)).rejects.toMatchObject({
    code: 'invalid_input',
    detail: { field: 'users[x].user.exec' },
  });
  expect(existsSync(traces)).toBe(false);
});
