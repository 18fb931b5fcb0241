/** isthmus broker serve: the only command that carries the broker itself. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { CliIo } from '#cli/output/io.ts';
import { version } from '#cli/output/version.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { consoleFolder } from './broker-console.ts';

interface ServeOptions {
  readonly data: string;
  readonly listen: string;
  readonly publicUrl?: string;
  readonly tenant: string;
  readonly newAdminKey?: boolean;
  readonly newOperatorKey?: boolean;
  readonly allowPrivateIssuers?: boolean;
  readonly allowPrivateWebhooks?: boolean;
  readonly awsPrincipal?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly trustedProxy: readonly string[];
  readonly corsOrigin: readonly string[];
  readonly longestWait?: number;
  readonly metrics?: string;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly output: 'text' | 'json';
}

export const brokerCommand = (io: CliIo): Command =>
  new Command('broker')
    .addCommand(serveCommand(io))
    .addCommand(backupCommand(io))
    .addCommand(restoreCommand(io))
    .addCommand(upgradeCommand(io));

const serveCommand = (io: CliIo): Command =>
  new Command('serve')
    .description('run the broker in this process until it is stopped')
    .requiredOption('--data <dir>', 'directory of its database, keys and certificates; made when absent')
    .option('--listen <address>', 'HOST:PORT to listen on', '0.0.0.0:8443')
    .option('--public-url <url>', 'how agents and users reach it (default: derived from --listen)')
    .option('--tenant <name>', 'the tenant made at the first start', 'default')
    .option('--new-admin-key', 'issue one more admin key, when the first is lost')
    .option('--new-operator-key', 'issue one more operator key, which makes and suspends tenants')
    .option('--allow-private-issuers', 'identity providers of tenants may have private addresses')
    .option('--allow-private-webhooks', 'webhooks may have private addresses, and plain HTTP on loopback')
    .option(
      '--aws-principal <arn>',
      'ARN of the AWS identity of this process: tenants name it in the trust policies of roles for their event targets',
    )
    .option('--tls-cert <file>', 'certificate of your own in PEM, with those up to its root (default: of an own CA)')
    .option('--tls-key <file>', 'its key, in PEM; both are read again when they change')
    .option(
      '--trusted-proxy <cidr>',
      'a proxy in front that is believed in X-Forwarded-For; may be repeated',
      (cidr: string, before: readonly string[]) => [...before, cidr],
      [],
    )
    .option(
      '--cors-origin <origin>',
      'pages of this origin may use the REST API from a browser; may be repeated (default: none)',
      (origin: string, before: readonly string[]) => [...before, origin],
      [],
    )
    .option(
      '--longest-wait <seconds>',
      'answer ?wait= after this long at most; for proxies that cut sooner',
      waitSeconds,
    )
    .option('--metrics <address>', 'HOST:PORT of loopback where /metrics is served (default: nowhere)')
    .addOption(
      new Option('--log-level <level>', 'log on stderr').choices(['debug', 'info', 'warn', 'error']).default('info'),
    )
    .addOption(
      new Option('-o, --output <format>', 'form of what is printed once it listens')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addHelpText(
      'after',
      `
The first start prints an admin key, once: only its hash is stored. Everything lives in --data; stopping or killing the broker at any moment
loses nothing that was acknowledged, and existing peerings run on without it.

Example:
  isthmus broker serve --data /var/lib/isthmus --listen 0.0.0.0:8443 --public-url https://broker.example.com:8443`,
    )
    .action((options: ServeOptions) => serve(io, options));

function waitSeconds(text: string): number {
  const seconds = Number(text);
  if (text !== '' && seconds >= 0 && seconds <= 25) return seconds;
  throw new InvalidArgumentError('Accepted are 0 to 25 seconds.');
}

async function serve(io: CliIo, options: ServeOptions): Promise<void> {
  // Loaded late: no other command needs a server, a database and a certificate authority.
  const [{ startBroker }, { createJsonLog }] = await Promise.all([
    import('#functions/local/broker.ts'),
    import('#functions/runtime/json-log.ts'),
  ]);
  const broker = await startBroker({
    dataDir: options.data,
    listen: options.listen,
    ...(options.publicUrl !== undefined && { publicUrl: options.publicUrl }),
    tenant: options.tenant,
    newAdminKey: options.newAdminKey === true,
    newOperatorKey: options.newOperatorKey === true,
    allowPrivateIssuers: options.allowPrivateIssuers === true,
    allowPrivateWebhooks: options.allowPrivateWebhooks === true,
    ...(options.awsPrincipal !== undefined && { awsPrincipal: options.awsPrincipal }),
    ...certificateOf(options),
    trustedProxies: options.trustedProxy,
    corsOrigins: options.corsOrigin,
    ...(options.longestWait !== undefined && { longestWaitSeconds: options.longestWait }),
    consoleFolder,
    ...(options.metrics !== undefined && { metrics: options.metrics }),
    log: createJsonLog(options.logLevel),
    version,
  });
  const { url, caHash, caFile, tenant, adminKey, operatorKey } = broker;
  if (options.output === 'json') {
    io.stdout.write(
      `${JSON.stringify({ url, caHash, caFile, tenant, ...(adminKey && { adminKey }), ...(operatorKey && { operatorKey }) })}\n`,
    );
  } else {
    io.stdout.write(`isthmus broker ${version} listens on ${url} (tenant ${tenant}, data in ${options.data})\n`);
    io.stdout.write(caHash === '' ? 'certificate of a public CA\n' : `CA ${caFile}, SHA-256 ${caHash}\n`);
    if (adminKey !== undefined) io.stdout.write(`admin key, shown this once: ${adminKey}\n`);
    if (operatorKey !== undefined) io.stdout.write(`operator key, shown this once: ${operatorKey}\n`);
    io.stdout.write(`console ${url}/\n`);
    io.stdout.write(
      `log in with:\n  isthmus login ${url}${caHash === '' ? '' : ` --ca-hash ${caHash}`} --key ${adminKey ?? 'KEY'}\n`,
    );
  }
  try {
    await Promise.race([untilAborted(io.signal), broker.failed]);
  } finally {
    await broker.close();
  }
}

function certificateOf({ tlsCert, tlsKey }: ServeOptions) {
  if (tlsCert === undefined && tlsKey === undefined) return {};
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new AppError('fields_conflict', '--tls-cert and --tls-key are given together or not at all', {
      detail: { field: tlsCert === undefined ? 'tls-cert' : 'tls-key' },
    });
  }
  return { certificate: { certFile: tlsCert, keyFile: tlsKey } };
}

const backupCommand = (io: CliIo): Command =>
  new Command('backup')
    .description('copy the data of a broker, while it runs or not')
    .requiredOption('--data <dir>', 'data directory of the broker')
    .requiredOption('--to <dir>', 'directory of the copy, empty or not there; as secret as the data itself')
    .action(async ({ data, to }: { data: string; to: string }) => {
      const { backUp } = await import('#functions/local/backup.ts');
      await backUp(data, to);
      io.stdout.write(`${data} is copied to ${to}\n`);
    });

const restoreCommand = (io: CliIo): Command =>
  new Command('restore')
    .description('put a copy back, into a directory that is empty; no broker may run on it')
    .requiredOption('--from <dir>', 'a copy that `isthmus broker backup` made')
    .requiredOption('--data <dir>', 'data directory to be, empty or not there')
    .action(async ({ from, data }: { from: string; data: string }) => {
      const { restore } = await import('#functions/local/backup.ts');
      await restore(from, data);
      io.stdout.write(`${from} is restored to ${data}; start the broker with --data ${data}\n`);
    });

const upgradeCommand = (io: CliIo): Command =>
  new Command('upgrade')
    .description('bring the data of an older version to this one, after a copy; no broker may run on it')
    .requiredOption('--data <dir>', 'data directory of the broker')
    .addHelpText(
      'after',
      `
\`isthmus broker serve\` does the same at its start. The way back: move the directory aside, restore the copy, start the older version:
  mv /var/lib/isthmus /var/lib/isthmus.new
  isthmus broker restore --from /var/lib/isthmus.new/before-format-2-20261122T221500Z --data /var/lib/isthmus`,
    )
    .action(async ({ data }: { data: string }) => {
      const { upgradeStopped } = await import('#functions/local/upgrade.ts');
      const { from, to, copy } = await upgradeStopped(data, Date.now());
      io.stdout.write(
        copy === undefined
          ? `${data} has format ${to} already: nothing was changed\n`
          : `${data} is upgraded from format ${from} to ${to}; as it was before, it is in ${copy}\n`,
      );
    });

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
