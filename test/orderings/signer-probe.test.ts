/** The controller that finds out whether a cluster signs certificates, whose writes are done while their answers are lost. */
import { expect, test } from 'vitest';
import { createSignerProbeController } from '#agent/peering/credentials/signer-probe.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { certificateSigningRequests, secrets } from '#shared/domain/core-kinds.ts';
import { authenticationKeysSecret, isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { MemoryCluster } from './memory-cluster.ts';

const systemNamespace = 'isthmus';
const writes = new Set(['create', 'update', 'mergePatch', 'delete']);

/** The answer to one write, counted from 0, never arrives. */
function losing(api: KubeApi, lost: number): KubeApi {
  let count = 0;
  return new Proxy(api, {
    get(target, name: keyof KubeApi) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>;
      if (!writes.has(name)) return method.bind(target);
      return async (...args: unknown[]) => {
        const answer = await method.apply(target, args);
        count += 1;
        if (count - 1 === lost) throw new AppError('kube_unreachable', 'the answer was lost');
        return answer;
      };
    },
  });
}

test.each([
  ['that makes the request', 0],
  ['that approves it', 1],
  ['that deletes it', 2],
  ['that notes the finding', 3],
])(
  'a signer that works is found, and no request is left, when the answer to the write %s is lost',
  async (_which, lost) => {
    const clock = new ManualClock();
    const memory = new MemoryCluster(clock, () => 0);
    memory.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } });
    const keys = { namespace: systemNamespace, name: authenticationKeysSecret };
    memory.create({ apiVersion: 'v1', kind: 'Secret', metadata: keys });
    const ended = new AbortController();
    const client = memory.open('own', ended.signal);
    memory.onWrite = (_before, after) => {
      const request = after as {
        kind?: string;
        metadata: object;
        status?: { certificate?: string; conditions?: unknown };
      };
      if (
        request?.kind !== certificateSigningRequests.kind ||
        !request.status?.conditions ||
        request.status.certificate
      )
        return;
      const status = { ...request.status, certificate: 'c2lnbmVk' };
      void client.api.update(certificateSigningRequests, { ...request, status } as never, { subresource: 'status' });
    };
    const cluster = { ...client, api: losing(client.api, lost) } as Cluster;
    const config = {
      apiServerUrl: 'https://192.0.2.1',
      apiServerCa: '',
      systemNamespace,
      credentials: 'auto',
    } as const;
    const controller = createSignerProbeController({
      cluster,
      clusterId: 'rome',
      config,
      clock,
      log: silentLog,
      ids: { next: (prefix) => prefix, bytes: (length) => new Uint8Array(length) },
    });
    const running = controller.run(ended.signal);
    const finding = () => memory.now(secrets, keys)?.metadata.annotations?.[isthmusAnnotation.credentials];
    for (let step = 0; step < 200 && finding() === undefined; step++) {
      memory.deliverOne();
      clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect([finding(), memory.all(certificateSigningRequests)]).toEqual(['certificate', []]);
    ended.abort();
    await running;
  },
);
