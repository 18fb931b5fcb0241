import { expect, test } from 'vitest';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '../eventually.ts';
import type { AdminApi } from './clean.ts';
import { createApiServerPool } from './serving.ts';

const node = {
  metadata: { name: 'silent' },
  status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }] },
};
const create = async (api: AdminApi): Promise<void> =>
  expect((await api.call('POST', '/api/v1/nodes', node)).status).toBe(201);
const readinessOf = async (api: AdminApi): Promise<string | undefined> => {
  const { status } = await api.read<typeof node>('/api/v1/nodes/silent');
  return status.conditions.find(({ type }) => type === 'Ready')?.status;
};

/** Kubernetes gives a silent node up after 50 s, and looks every 5 s. */
test('what kube-controller-manager remembers of a silent node is not held against the next one of its name', async () => {
  const pool = createApiServerPool(console.error);
  try {
    const first = await pool.lease();
    const { api } = first.server;
    await create(api);
    await eventually('the silent node is given up', async () => (await readinessOf(api)) === 'Unknown', {
      withinMs: 120_000,
      everyMs: 500,
    });
    await first.release();
    const second = await pool.lease();
    expect(second.server).toBe(first.server);
    await create(api);
    const until = performance.now() + 20_000;
    const seen = new Set<string | undefined>();
    await eventually(
      '20 s of looks',
      async () => {
        seen.add(await readinessOf(api));
        return performance.now() > until;
      },
      { everyMs: 500, withinMs: 60_000 },
    );
    expect([...seen]).toEqual(['True']);
  } finally {
    await pool.close();
  }
}, 300_000);

test('a server that lost what nothing brings back is ended, and the next holder gets another one', async () => {
  const messages: string[] = [];
  const impatient = createApiServerPool((line) => messages.push(line), { cleanWithinMs: 500 });
  try {
    const first = await impatient.lease();
    const kind = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${virtualNodes.plural}.${virtualNodes.group}`;
    expect((await first.server.api.call('DELETE', kind)).status).toBe(200);
    await first.release();
    expect(messages.join()).toContain(`${virtualNodes.plural}.${virtualNodes.group} is missing`);
    const second = await impatient.lease();
    expect(second.server.server.url).not.toBe(first.server.server.url);
    expect((await second.server.api.call('GET', kind)).status).toBe(200);
    await second.release();
  } finally {
    await impatient.close();
  }
}, 180_000);
