/** Admission as a whole: certificate, server, and the registration that makes the API server ask us. Runs in every replica. */
import { kindsRefusedToSome } from '#agent/model/policies.ts';
import type { ControllerMetrics } from '#kube/model/metrics.ts';
import type { Cluster } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { mutatingWebhookConfigurations, secrets, validatingWebhookConfigurations } from '#shared/domain/core-kinds.ts';
import { systemNamespace as defaultNamespace, fieldManager } from '#shared/domain/liqo-keys.ts';
import { again } from '#shared/domain/outcome.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { MayCall } from './callers.ts';
import { type Certificates, certificateSecret, ensureCertificates } from './certificate-secret.ts';
import {
  configurationName,
  mutatingConfiguration,
  validatingConfiguration,
  webhookLabel,
  webhookPort,
  webhookService,
} from './configurations.ts';
import type { Hooks } from './hook.ts';
import { type OnVerdict, serveAdmission } from './server.ts';

export interface AdmissionDeps {
  readonly cluster: Cluster;
  /** The hooks of every room; the composition root gathers them. */
  readonly hooks: Hooks;
  readonly clock: Clock;
  readonly log: Log;
  readonly systemNamespace?: string;
  readonly host?: string;
  /** 9443 by default; 0: any that is free. */
  readonly port?: number;
  /** Instead of the Service: the API server calls this host, at the port we listen on. */
  readonly callHost?: string;
  /** PEM: API servers must show a certificate of this CA. */
  readonly clientCa?: string;
  /** Default: every caller. */
  readonly mayCall?: MayCall;
  readonly metrics?: ControllerMetrics;
  readonly onVerdict?: OnVerdict;
}

export interface Admission {
  readonly port: number;
  /** Resolves when the API server has been told for the first time to ask here. */
  readonly registered: Promise<void>;
  /** Keeps certificate and registration in order until the signal aborts, then stops serving. The registration stays: `isthmus leave` and `uninstall` take it away. */
  run(signal: AbortSignal): Promise<void>;
}

const checkMs = 3600_000;
/** How long API servers may take to learn of a new bundle before the new certificate is shown to them. */
const graceMs = 5_000;

/** Serves from the moment it resolves; the API server asks as soon as `run` has registered. */
export async function startAdmission(deps: AdmissionDeps): Promise<Admission> {
  const { cluster, hooks, clock, log, systemNamespace = defaultNamespace, callHost } = deps;
  const { api } = cluster;
  const policies = cluster.caches.cache(peeringPolicies);
  const hosts = [
    `${webhookService}.${systemNamespace}.svc`,
    `${webhookService}.${systemNamespace}.svc.cluster.local`,
    ...(callHost ? [callHost] : []),
  ];
  let serving: Certificates = await ensureCertificates(api, systemNamespace, hosts, clock.now());
  const server = await serveAdmission({
    routes: hooks.routes,
    certificate: serving,
    secretPath: serving.secretPath,
    log: log.with({ part: 'admission' }),
    port: deps.port ?? webhookPort,
    ...(deps.host !== undefined && { host: deps.host }),
    ...(deps.clientCa !== undefined && { clientCa: deps.clientCa }),
    ...(deps.mayCall !== undefined && { mayCall: deps.mayCall }),
    ...(deps.onVerdict !== undefined && { onVerdict: deps.onVerdict }),
  });
  let announce = (): void => undefined;
  const registered = new Promise<void>((resolve) => {
    announce = resolve;
  });
  const url = callHost === undefined ? {} : { url: `https://${callHost}:${server.port}` };

  async function register(signal: AbortSignal) {
    const wanted = await ensureCertificates(api, systemNamespace, hosts, clock.now(), signal);
    // The registration waits for the caches: until they know the cluster, the hooks would refuse valid requests.
    await hooks.synced(signal);
    // Before API servers are told of it: from then on both are heard, and after the grace period only this one.
    server.hearAlso(wanted.secretPath);
    const endpoint = { bundle: wanted.bundle, secretPath: wanted.secretPath, namespace: systemNamespace, ...url };
    const options = { fieldManager: fieldManager.agent };
    await api.apply(mutatingWebhookConfigurations, mutatingConfiguration(endpoint), options, signal);
    const validating = validatingConfiguration(endpoint, kindsRefusedToSome(policies.list()));
    await api.apply(validatingWebhookConfigurations, validating, options, signal);
    announce();
    if (wanted.certificate !== serving.certificate || wanted.secretPath !== serving.secretPath) {
      // The bundle already trusts both certificates. After the grace period every API server has read it, so the server can present the new one.
      await clock.sleep(graceMs, signal);
      server.use(wanted);
      serving = wanted;
      log.info('webhook certificate renewed');
    }
    return again(checkMs);
  }

  const only = { fieldSelector: `metadata.name=${certificateSecret}`, namespace: systemNamespace };
  const ours = { labelSelector: `${webhookLabel}=true` };
  const key = () => [configurationName];
  const controller = createController(
    {
      name: 'admission',
      workers: 1,
      watches: [
        watch(cluster.caches.cache(secrets, only), key),
        watch(cluster.caches.cache(mutatingWebhookConfigurations, ours), key),
        watch(cluster.caches.cache(validatingWebhookConfigurations, ours), key),
        watch(policies, key),
      ],
      reconcile: (_, signal) => register(signal),
    },
    deps,
  );

  return {
    port: server.port,
    registered,
    async run(signal) {
      try {
        controller.enqueue(configurationName);
        await controller.run(signal);
      } finally {
        await server.close();
      }
    },
  };
}
