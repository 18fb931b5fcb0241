/**
 * The checks of `isthmus check` in a pod of the cluster, by the pod's account: what the Helm chart runs before an installation or an upgrade. It takes the
 * same options, and ends with 1 when a check stops.
 */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type KubeClient, openLoaded } from './cluster/open.ts';
import { retryReads } from './cluster/retry.ts';
import { printReport } from './commands/check.ts';
import { checkOptions, rangeOptions } from './commands/install-options.ts';
import { explain } from './output/failure.ts';
import { type CheckName, stopsOf } from './preflight/findings.ts';
import type { CheckFlags } from './preflight/observe.ts';
import { check, refusalOf } from './preflight/preflight.ts';

/** The account of the pod may look and nothing else. The user of Helm has rights of its own, which show when Helm writes. */
const ofInstallers: readonly CheckName[] = ['rights'];

const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443', ...env } = process.env;
const { TOKEN_FILE: tokenFile = '', NODE_EXTRA_CA_CERTS: caFile = '' } = env;
const io = { clock: systemClock, signal: new AbortController().signal };

function openOwn(): Promise<KubeClient> {
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const ca = readFileSync(caFile).toString('base64');
  const [name, user] = ['own', { token: readFileSync(tokenFile, 'utf8').trim() }];
  const text = JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': name },
    clusters: [{ name, cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  });
  return openLoaded({ text, context: name, server }, 'of the pod', io);
}

const program = checkOptions(rangeOptions(new Command('check'))).action(async (flags: CheckFlags) => {
  const ignored = [...flags.ignoreCheck, ...ofInstallers];
  const wanted = { clusterId: undefined, remedy: (known: string) => `it is ${known}` };
  const report = await check(io, retryReads(io, await openOwn()), { ...flags, kubeconfig: 'FILE' }, wanted);
  const findings = report.findings.filter(({ check: name }) => !ofInstallers.includes(name));
  printReport({ stdout: process.stdout, env }, 'table', { ...report, findings });
  const refusal = refusalOf(stopsOf(findings, ignored));
  if (refusal !== undefined) throw refusal;
});

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(explain(error).text);
  process.exitCode = 1;
}
