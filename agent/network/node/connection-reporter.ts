/** Writes `Connection.status` for one link: at once when something happened, otherwise every ten seconds; one write at a time, the latest report wins. */
import type { KubeApi } from '#kube/model/types.ts';
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { AnnouncedRanges } from '../link/ping/message.ts';
import type { LinkReport } from '../link/tunnel/run.ts';
import { type Written, worthWriting } from './connection-status.ts';

export interface ConnectionReporter {
  /** `announced`: what ranges the peer last said it has. */
  report(report: LinkReport, announced?: AnnouncedRanges): void;
  /** Resolves when nothing is being written. */
  ended(): Promise<void>;
}

/** After a failed write; the Connection may not have been made yet. */
const retryMs = 1_000;

export function createConnectionReporter(
  { api, clock, log }: { readonly api: KubeApi; readonly clock: Clock; readonly log: Log },
  connection: ObjectRef,
  signal: AbortSignal,
): ConnectionReporter {
  let last: Written | undefined;
  let writing: Promise<void> | undefined;
  let notBefore = 0;
  return {
    report(report, announced) {
      const now = clock.now();
      if (writing !== undefined || now < notBefore || signal.aborted) return;
      const fields = worthWriting(report, last, now, announced);
      if (fields === undefined) return;
      writing = api
        .mergePatch(networkKinds.connections, connection, { status: fields }, { subresource: 'status' }, signal)
        .then(() => {
          last = { fields, at: now };
        })
        .catch((error) => {
          notBefore = clock.now() + retryMs;
          log.debug('the status of the connection was not written', { code: codeOf(error) });
        })
        .finally(() => {
          writing = undefined;
        });
    },
    async ended() {
      await writing;
    },
  };
}
