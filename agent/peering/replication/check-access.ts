/** Tries new control-plane credentials once, so that what is wrong with them is said on their Secret and not only on what waits for them. */

import { abortsWith } from '#shared/async/abort-scope.ts';
import { again, type Outcome, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { atProvider, outcomeOfFailure, ProviderError } from './remote-failure.ts';
import type { Session } from './sessions.ts';

export interface Access {
  /** Undefined: they work, or worked before. */
  readonly trouble?: Outcome;
  /** For people, at once. */
  readonly warning?: { readonly reason: string; readonly message: string };
}

const answerMs = 3_000;
const retryMs = 5_000;

export function createAccessCheck(clusterId: string): (session: Session, signal: AbortSignal) => Promise<Access> {
  const proven = new Map<string, string>();
  return async (session, signal) => {
    const { secretKey, fingerprint, peer, remoteNamespace } = session;
    if (proven.get(secretKey) === fingerprint) return {};
    const impatient = abortsWith(signal, AbortSignal.timeout(answerMs));
    try {
      const labelSelector = `liqo.io/originID=${clusterId}`;
      await atProvider(session.connection.api.list(renews, { namespace: remoteNamespace, labelSelector }, impatient));
      proven.set(secretKey, fingerprint);
      return {};
    } catch (error) {
      if (signal.aborted) throw error;
      const message = messageOf(error);
      const code = codeOf(error instanceof ProviderError ? error.failure : error);
      if (code === 'kube_unauthorized')
        return {
          trouble: again(retryMs),
          warning: {
            reason: 'CredentialsRefused',
            message: `provider ${peer} does not accept these credentials: ${message}`,
          },
        };
      if (impatient.aborted || code === 'kube_unreachable')
        return {
          trouble: again(retryMs),
          warning: {
            reason: 'ProviderUnreachable',
            message: `the API server of ${peer} in this kubeconfig does not answer: ${message}`,
          },
        };
      const outcome = outcomeOfFailure(error, peer);
      if (outcome === undefined) throw error;
      return {
        trouble:
          outcome.kind === 'waiting'
            ? waiting(
                `${outcome.on} (namespace ${remoteNamespace} of annotation liqo.io/remote-tenant-namespace)`,
                retryMs,
              )
            : outcome,
      };
    }
  };
}
