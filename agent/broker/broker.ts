/** The agent's session with the broker: reports up, desired sets down, a notify socket beside them. Peerings work on without it. */
import type { KeyObject } from 'node:crypto';
import type { BrokerFacts } from '#agent/metrics/peers.ts';
import type { ControllerMetrics } from '#kube/model/metrics.ts';
import type { Cluster, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { abortScope } from '#shared/async/abort-scope.ts';
import { backoffMs, type Random } from '#shared/async/backoff.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';
import { DesiredAnswer, ObservedAnswer, type ObservedBatch } from '#shared/schema/protocol/agent-protocol.ts';
import { createPeeringRequests } from './requests/peering-objects.ts';
import { ensureEnrolled } from './session/enroll.ts';
import { createLinkStatus } from './session/link-status.ts';
import { createDoorbell } from './session/notify-socket.ts';
import { createIntervals } from './session/poll-interval.ts';
import { type BrokerClient, createBrokerClient } from './session/signed-client.ts';
import { createDesiredState } from './sync/apply-desired.ts';
import { createFacts } from './sync/facts.ts';
import { createReportDiff } from './sync/report-diff.ts';
import { createSamples } from './sync/samples.ts';
import { createUsage } from './sync/usage.ts';
import { brokerCaches } from './sync/watched-objects.ts';
import { createPeerTrust } from './trust/peer-trust.ts';

export interface BrokerControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly privateKey: KeyObject;
  /** base64: by the key before this one. */
  readonly succession?: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly random?: Random;
  readonly metrics?: ControllerMetrics;
  readonly config: {
    readonly systemNamespace: string;
    readonly agentVersion: string;
    readonly apiServerUrl: string;
    readonly apiServerCa: string;
  };
}

/** The last resort: pings and polls bring news within a heartbeat. */
const sweepMs = 6 * 3_600_000;
const joinCheckMs = 2_000;
const retryMs = (failures: number, random: Random = Math.random): number =>
  backoffMs(failures, { baseMs: 500, maxMs: 30_000, random });

export interface BrokerController {
  /** Undefined while there is no broker. */
  broker(): BrokerFacts | undefined;
  run(signal: AbortSignal): Promise<void>;
}

export function createBrokerController(deps: BrokerControllerDeps): BrokerController {
  const log = deps.log.with({ part: 'channel' });
  const facts = createFacts({ cluster: deps.cluster, ...deps.config });

  /** Waits until there is a broker to talk to; a cluster peered from manifests alone never leaves this loop. */
  async function enrolled(signal: AbortSignal): Promise<BrokerClient | undefined> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        const identity = await ensureEnrolled(
          { ...deps, log, systemNamespace: deps.config.systemNamespace },
          facts.read,
          signal,
        );
        if (identity) return createBrokerClient(identity, deps);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return undefined;
        failures += 1;
        log.error('enrolment failed, it will be tried again', error, { code: codeOf(error) });
      }
      await deps.clock
        .sleep(failures === 0 ? joinCheckMs : retryMs(failures, deps.random), signal)
        .catch(() => undefined);
    }
    return undefined;
  }

  let session: BrokerController | undefined;
  return {
    broker: () => session?.broker(),
    async run(signal) {
      await facts.ready(signal);
      const client = await enrolled(signal);
      if (!client) return;
      session = createSession({ ...deps, log, client, facts });
      await session.run(signal).finally(() => client.close());
    },
  };
}

interface SessionDeps extends BrokerControllerDeps {
  readonly client: BrokerClient;
  readonly facts: ReturnType<typeof createFacts>;
}

function createSession(deps: SessionDeps): BrokerController {
  const { cluster, clusterId, privateKey, succession, client, clock, log, facts, config, random } = deps;
  const caches = brokerCaches(cluster.caches);
  const up = createSignal();
  const down = createSignal();
  const status = createLinkStatus({ cluster, clock, agentVersion: config.agentVersion });
  const requests = createPeeringRequests({ cluster, clock, onChange: up.raise });
  const { tenant } = client.identity;
  const trust = createPeerTrust({
    cluster,
    clusterId,
    tenant,
    privateKey,
    ...(succession === undefined ? {} : { succession }),
    clock,
    log,
    facts: facts.read,
  });
  const sets = createDesiredState({
    cluster,
    caches,
    policies: facts.policies,
    trust,
    clusterId,
    tenant,
    log,
    onProgress: up.raise,
    again: (peering) => controller.enqueue(peering),
  });
  const controller: Controller = createController(
    {
      name: 'desired-set',
      workers: 2,
      watches: [
        ...caches.all.map((cache) => watch(cache, sets.peeringsOf)),
        watch(facts.policies, () => sets.peerings()),
        watch(trust.peers, (peer) => (trust.isChangedByAdministrator(peer) ? sets.peerings() : [])),
        watch(trust.locks, () => sets.peerings()),
      ],
      reconcile: sets.reconcile,
    },
    { clock, log, ...(deps.metrics !== undefined && { metrics: deps.metrics }) },
  );
  let doorbellUrl: string | undefined;
  const intervals = createIntervals();
  const doorbell = createDoorbell({
    client,
    clock,
    log,
    intervals,
    revision: sets.revision,
    onRing: down.raise,
    onChange: up.raise,
    address: () => doorbellUrl,
  });
  /** Nothing needs to be asked over HTTPS: pings say that the cluster lives, and are answered when there is news. */
  const isQuiet = () => doorbell.connected() && intervals.pingsSuffice;

  /** Runs `once` whenever raised, at least every `everyMs()`, and with back-off after a failure. */
  async function loop(
    raised: Raised,
    everyMs: () => number,
    once: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await once();
        failures = 0;
        await raised.wait(everyMs(), clock, signal);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        await status.failed(error, signal);
        log.warn('exchange with the broker failed', {
          code: codeOf(error),
          reason: messageOf(error),
          failures,
        });
        await clock.sleep(retryMs(failures, random), signal).catch(() => undefined);
      }
    }
  }

  async function pull(signal: AbortSignal): Promise<void> {
    const answer = await client.call(
      'GET',
      `/v1/agent/desired?after=${sets.revision()}`,
      undefined,
      DesiredAnswer,
      signal,
    );
    intervals.adopt({ protocolVersion: 1, ...answer });
    for (const peering of sets.accept(answer)) controller.enqueue(peering);
    await requests.answer(answer.answers, signal);
    up.raise();
    await status.exchanged(signal);
  }

  const usage = createUsage(cluster.caches);
  const samples = createSamples(clock, ({ peering, role }) =>
    role === 'provider' ? usage.of(sets.peerOf(peering)) : undefined,
  );
  const reports = createReportDiff(clock, samples.waiting);
  async function push(signal: AbortSignal): Promise<void> {
    const current = { sets: sets.observed(), facts: facts.read(), asks: [...requests.read()] };
    samples.note(current.sets);
    const batch = reports.send(current);
    const minutes = samples.take(batch.sets.map(({ peering }) => peering));
    if (isQuiet() && batch.sets.length === 0 && batch.facts === undefined && batch.asks === undefined) return;
    const report: ObservedBatch = minutes.length === 0 ? batch : { ...batch, samples: minutes };
    const answer = await client.call('POST', '/v1/agent/observed', report, ObservedAnswer, signal);
    intervals.adopt({ protocolVersion: 1, ...answer });
    doorbellUrl = answer.doorbellUrl;
    if (answer.revision !== sets.revision()) down.raise();
    reports.acknowledge(current);
    samples.acknowledge(minutes);
    sets.acknowledged(batch.sets);
    await status.exchanged(signal);
  }

  return {
    broker: status.facts,
    async run(signal) {
      for (const cache of caches.all) cache.subscribe(up.raise);
      facts.subscribe(up.raise);
      trust.locks.subscribe(up.raise);
      intervals.changed(up.raise);
      await Promise.all([
        requests.ready(signal),
        trust.ready(signal),
        usage.ready(signal),
        ...caches.all.map((cache) => cache.synced(signal)),
      ]);
      await Promise.all([
        controller.run(signal),
        doorbell.run(signal),
        loop(
          down,
          () => sweepMs,
          () => pull(signal),
          signal,
        ),
        loop(
          up,
          () => (isQuiet() ? sweepMs : intervals.pollMs()),
          () => push(signal),
          signal,
        ),
      ]);
    },
  };
}

interface Raised {
  raise(): void;
  wait(atMostMs: number, clock: Clock, signal: AbortSignal): Promise<void>;
}

/** A flag to wait on: a raise without a waiter is kept, many raises are one. */
function createSignal(): Raised {
  let raised = false;
  let wake: (() => void) | undefined;
  return {
    raise() {
      raised = true;
      wake?.();
    },
    async wait(atMostMs, clock, signal) {
      if (!raised) {
        const done = abortScope(signal);
        const flagged = new Promise<void>((resolve) => {
          wake = resolve;
        });
        await Promise.race([flagged, clock.sleep(atMostMs, done.signal).catch(() => undefined)]);
        done.abort();
        done.unlink();
        wake = undefined;
      }
      raised = false;
    },
  };
}
