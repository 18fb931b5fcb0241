/** Connections to providers, one per control-plane kubeconfig Secret, each with caches of the copies we have there. */
import { createHash } from 'node:crypto';
import type { Cache } from '#kube/model/types.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import type { KubeObject, ResourceType, Secret } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import type { ConnectPeer, PeerConnection } from '../model/deps.ts';
import type { Replicated } from './replica.ts';

const erased = (type: unknown): ResourceType<Replicated> => type as ResourceType<Replicated>;
export const replicatedKinds: readonly ResourceType<Replicated>[] = [
  erased(resourceSlices),
  erased(namespaceMaps),
  erased(renews),
];

/** What a Secret says about where and how to replicate. */
export interface Credentials {
  readonly secretKey: string;
  readonly peer: string;
  readonly localNamespace: string;
  readonly remoteNamespace: string;
  readonly kubeconfig: string;
  readonly fingerprint: string;
}

/** Undefined: not a control-plane credential, or not complete yet. */
export function credentialsOf(secret: Secret, secretKey: string): Credentials | undefined {
  const peer = secret.metadata.labels?.[label.remoteClusterId];
  const remoteNamespace = secret.metadata.annotations?.[annotation.remoteTenantNamespace];
  const data = secret.data?.kubeconfig;
  if (!isControlPlane(secret) || !peer || !remoteNamespace || !data) return undefined;
  const fingerprint = createHash('sha256').update(`${remoteNamespace}\n${data}`).digest('hex');
  const localNamespace = secret.metadata.namespace ?? '';
  return {
    secretKey,
    peer,
    localNamespace,
    remoteNamespace,
    kubeconfig: Buffer.from(data, 'base64').toString(),
    fingerprint,
  };
}

export const isControlPlane = (secret: KubeObject): boolean =>
  secret.metadata.labels?.[label.identityType] === 'ControlPlane';

export interface Session extends Credentials {
  readonly connection: PeerConnection;
  /** Aborts at `stop`, with `kube_unreachable`. */
  readonly ended: AbortSignal;
  copies(type: ResourceType): Cache<Replicated>;
  stop(): void;
}

export interface SessionHooks {
  /** A copy changed at the provider. */
  readonly onCopy: (type: ResourceType, copy: Replicated, session: Session) => void;
  /** Every copy of this kind is known now. */
  readonly onSynced: (type: ResourceType, session: Session) => void;
}

export async function openSession(
  credentials: Credentials,
  consumer: string,
  connect: ConnectPeer,
  hooks: SessionHooks,
  signal: AbortSignal,
): Promise<Session> {
  const ended = new AbortController();
  const until = abortsWith(signal, ended.signal);
  const connection = await connect(credentials.kubeconfig, until);
  const selection = {
    namespace: credentials.remoteNamespace,
    labelSelector: `${label.originId}=${consumer},${label.replicated}=true`,
  };
  const caches = new Map(
    replicatedKinds.map((type) => [type.plural, connection.caches.scoped(type, selection, until)] as const),
  );
  const session: Session = {
    ...credentials,
    connection,
    ended: ended.signal,
    copies(type) {
      const cache = caches.get(type.plural);
      if (cache === undefined) throw new RangeError(`${type.kind} is not replicated`);
      return cache;
    },
    stop: () => ended.abort(new AppError('kube_unreachable', 'the connection to the provider was closed')),
  };
  for (const type of replicatedKinds) {
    const cache = session.copies(type);
    cache.subscribe(({ before, after }) => {
      const copy = after ?? before;
      if (copy !== undefined && !until.aborted) hooks.onCopy(type, copy, session);
    });
    cache.synced(until).then(
      () => hooks.onSynced(type, session),
      () => undefined,
    );
  }
  return session;
}
