/** The connections that are open, one per provider. */
import { keyOf, type ObjectRef, type ResourceType, type Secret } from '#shared/domain/kube-object.ts';
import { type Outcome, stalled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { ConnectPeer } from '../model/deps.ts';
import type { Replicated } from './replica.ts';
import { credentialsOf, openSession, type Session } from './sessions.ts';

export interface Connections {
  /** An outcome: why there is none. */
  ensure(secret: Secret): Promise<Session | Outcome>;
  /** Undefined `peer`: any peer that has the namespace. */
  in(namespace: string | undefined, peer?: string): Session | undefined;
  stop(secretKey: string): void;
  /** After this, connections end with the next `stopAll`. */
  start(): void;
  stopAll(): void;
}

export interface ConnectionHooks {
  readonly onCopy: (type: ResourceType, local: ObjectRef) => void;
  /** Its work may go on: it can be reached, or more of what it has is known. */
  readonly onChange: (peer: string) => void;
}

export function createConnections(clusterId: string, connect: ConnectPeer, hooks: ConnectionHooks): Connections {
  const sessions = new Map<string, Session>();
  let lifetime = new AbortController();

  const all: Connections = {
    async ensure(secret) {
      const secretKey = keyOf(secret);
      const credentials = credentialsOf(secret, secretKey);
      if (credentials === undefined) {
        all.stop(secretKey);
        return waiting('data.kubeconfig and annotation liqo.io/remote-tenant-namespace', 60_000);
      }
      const running = sessions.get(secretKey);
      if (running?.fingerprint === credentials.fingerprint) return running;
      const rival = [...sessions.values()].find((one) => one.peer === credentials.peer && one.secretKey !== secretKey);
      if (rival !== undefined) {
        return stalled(
          'DuplicateCredentials',
          `Secret ${rival.secretKey} already holds the control-plane credentials for ${credentials.peer}; delete one of them`,
        );
      }
      all.stop(secretKey);
      const onCopy = (type: ResourceType, copy: Replicated, { localNamespace }: Session): void =>
        hooks.onCopy(type, { namespace: localNamespace, name: copy.metadata.name });
      const onSynced = (_type: ResourceType, { peer }: Session): void => hooks.onChange(peer);
      try {
        const session = await openSession(credentials, clusterId, connect, { onCopy, onSynced }, lifetime.signal);
        sessions.set(secretKey, session);
        hooks.onChange(credentials.peer);
        return session;
      } catch (error) {
        if (codeOf(error) === 'invalid_input') return stalled('InvalidKubeconfig', (error as Error).message);
        throw error;
      }
    },
    in: (namespace, peer) =>
      [...sessions.values()].find(
        (session) => session.localNamespace === namespace && (peer === undefined || session.peer === peer),
      ),
    stop(secretKey) {
      sessions.get(secretKey)?.stop();
      sessions.delete(secretKey);
    },
    start() {
      lifetime = new AbortController();
    },
    stopAll() {
      lifetime.abort(new Error('the replicator stopped'));
      for (const secretKey of [...sessions.keys()]) all.stop(secretKey);
    },
  };
  return all;
}
