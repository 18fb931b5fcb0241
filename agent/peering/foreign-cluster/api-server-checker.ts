/** Asks each provider's API server, every 15 s, whether it lives. */

import { peerOf } from '#agent/model/peering-selections.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { abortScope } from '#shared/async/abort-scope.ts';
import type { KubeObject, Namespace, Secret } from '#shared/domain/kube-object.ts';
import { again, settled } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { ConnectPeer, PeerConnection, PeeringDeps } from '../model/deps.ts';
import { isControlPlane } from '../replication/sessions.ts';
import type { ApiServerHealth } from './decide.ts';

const checkEveryMs = 15_000;
const checkTimeoutMs = 5_000;

interface Probe {
  readonly kubeconfig: string;
  readonly connection: PeerConnection;
  stop(): void;
}

export interface CredentialSource {
  readonly secretCache: Cache<Secret>;
  /** Tenant namespaces: they say whose the credentials in them are, and may become known after those. */
  readonly namespaces: Cache<Namespace>;
  /** The control-plane kubeconfig Secrets that may speak for a provider. */
  readonly credentialsFor: (peer: string) => readonly Secret[];
}

export interface ApiServerChecker extends Controller {
  health(peer: string): ApiServerHealth | undefined;
}

const keysOf = (object: KubeObject): string[] => {
  const peer = peerOf(object);
  return peer === undefined || peer === '' ? [] : [peer];
};

export function createApiServerChecker(
  { clock, log }: PeeringDeps,
  { secretCache, namespaces, credentialsFor }: CredentialSource,
  connect: ConnectPeer,
  onChange: (peer: string) => void,
): ApiServerChecker {
  const results = new Map<string, ApiServerHealth>();
  const probes = new Map<string, Probe>();
  let lifetime = new AbortController();

  function forget(peer: string): void {
    probes.get(peer)?.stop();
    probes.delete(peer);
    if (results.delete(peer)) onChange(peer);
  }

  async function probeOf(peer: string, kubeconfig: string): Promise<Probe> {
    const running = probes.get(peer);
    if (running?.kubeconfig === kubeconfig) return running;
    running?.stop();
    const ended = abortScope(lifetime.signal);
    const connection = await connect(kubeconfig, ended.signal);
    const stop = (): void => {
      ended.abort(new Error('the credentials changed'));
      ended.unlink();
    };
    const probe: Probe = { kubeconfig, connection, stop };
    probes.set(peer, probe);
    return probe;
  }

  async function check(peer: string, kubeconfig: string, signal: AbortSignal): Promise<ApiServerHealth> {
    const deadline = abortScope(signal);
    const late = clock.sleep(checkTimeoutMs, deadline.signal).then(
      () => {
        throw new Error(`no answer to /livez within ${checkTimeoutMs / 1000} s`);
      },
      () => undefined as never,
    );
    try {
      const { connection } = await probeOf(peer, kubeconfig);
      await Promise.race([connection.api.getPath('/livez', deadline.signal), late]);
      return { ok: true, message: 'the API server answers' };
    } catch (error) {
      const reason = messageOf(error);
      return {
        ok: false,
        message: codeOf(error) === 'kube_unauthorized' ? `it refuses our credentials: ${reason}` : reason,
      };
    } finally {
      deadline.abort();
      deadline.unlink();
    }
  }

  const controller = createController(
    {
      name: 'api-server-checker',
      workers: 4,
      watches: [
        watch(secretCache, (secret) => (isControlPlane(secret) ? keysOf(secret) : [])),
        watch(namespaces, keysOf),
      ],
      async reconcile(peer, signal) {
        const secret = credentialsFor(peer)[0];
        const data = secret?.data?.kubeconfig;
        if (secret === undefined || data === undefined || secret.metadata.deletionTimestamp !== undefined) {
          forget(peer);
          return settled;
        }
        const result = await check(peer, Buffer.from(data, 'base64').toString(), signal);
        if (signal.aborted) return settled;
        const before = results.get(peer);
        results.set(peer, result);
        if (before?.ok !== result.ok || before.message !== result.message) onChange(peer);
        return again(checkEveryMs);
      },
    },
    { clock, log },
  );

  return {
    ...controller,
    health: (peer) => results.get(peer),
    async run(signal) {
      lifetime = new AbortController();
      try {
        await controller.run(signal);
      } finally {
        lifetime.abort(new Error('the checker stopped'));
        probes.clear();
      }
    },
  };
}
