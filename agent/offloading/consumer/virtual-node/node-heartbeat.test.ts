import { expect, test } from 'vitest';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { NodeKeeper } from './node-heartbeat.ts';
import type { NodeInput } from './node-object.ts';

const node: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'milan', uid: 'u1', labels: { [label.type]: virtualNodeType, [label.remoteClusterId]: 'milan' } },
};

function keeper(renew: (signal: AbortSignal) => Promise<never>) {
  const said: unknown[] = [];
  const log: Log = {
    ...silentLog,
    with: () => log,
    warn: (message, fields) => void said.push([message, fields?.code]),
  };
  const one = new NodeKeeper({
    api: { mergePatch: (...[, , , , signal]: unknown[]) => renew(signal as AbortSignal) } as unknown as KubeApi,
    nodes: { get: () => node } as unknown as Cache<Node>,
    name: 'milan',
    input: () => ({ virtualNode: { spec: { clusterID: 'milan' } } }) as NodeInput,
    onTaken: () => undefined,
    clock: new ManualClock(),
    log,
  });
  return { one, said };
}

test('a lease that cannot be renewed is told of', async () => {
  const { one, said } = keeper(() => Promise.reject(new AppError('kube_forbidden', 'no rights on leases')));
  await one.renewLease(new AbortController().signal);
  expect(said).toEqual([['the node lease was not renewed', 'kube_forbidden']]);
});

test('a virtual node that stops while its lease is being renewed raises no alarm', async () => {
  const stop = new AbortController();
  const { one, said } = keeper(
    (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  );
  const renewing = one.renewLease(stop.signal);
  stop.abort();
  await renewing;
  expect(said).toEqual([]);
});
