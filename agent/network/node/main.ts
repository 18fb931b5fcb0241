/** Composition root of the node process: one per node, for the host's namespace and those of the gateway pods on it. */

import { countClient, countProcess } from '#agent/metrics/process.ts';
import { serveMetrics } from '#agent/metrics/server.ts';
import { createPlainLog } from '#agent/runtime/plain-log.ts';
import { connectInCluster } from '#kube/http/connection.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { Registry } from '#shared/metrics/registry.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { loadNodeAgentEnvironment } from './config.ts';
import { runNodeProcess } from './node-process.ts';

const version = process.env.ISTHMUS_VERSION ?? '0.0.0-dev';

async function main(): Promise<void> {
  const [role = 'run'] = process.argv.slice(2);
  if (role === 'version') return console.log(version);
  if (role !== 'run')
    throw new AppError('invalid_input', `the node process has no role ${JSON.stringify(role)}, accepted: run, version`);
  const env = loadNodeAgentEnvironment(process.env);
  const clock = systemClock;
  const log = createPlainLog(env.logLevel, { pod: env.podName });
  const asked = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => asked.abort(new Error(`received ${signal}`)));
  const connection = connectInCluster({
    clock,
    ...(env.apiHost === undefined ? {} : { host: env.apiHost }),
    ...(env.apiPort === undefined ? {} : { port: env.apiPort }),
    ...(env.serviceAccountDirectory === undefined ? {} : { directory: env.serviceAccountDirectory }),
  });
  const registry = new Registry();
  countProcess(registry, { version, role: 'node' });
  const reporting = { reportingController: 'isthmus-fabric', reportingInstance: env.podName };
  const cluster = openCluster(
    connection,
    { clock, log, metrics: countClient(registry, 'local') },
    new AbortController().signal,
    reporting,
  );
  if (env.metrics !== undefined)
    await serveMetrics(env.metrics, { registry, api: cluster.api, clock, log }, asked.signal);
  log.info('process started', { version, runtime: process.version });
  await runNodeProcess({ cluster, clock, log, env, registry }, asked.signal);
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    createPlainLog('info').error('the node process ends', error);
    process.exit(1);
  },
);
