/** isthmus broker serve: the only command that carries the broker itself. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { CliIo } from '#cli/output/io.ts';
import { version } from '#cli/output/version.ts';

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
  readonly longestWait?: number;
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error';
  readonly output: 'text' | 'json';
}

export const brokerCommand = (io: CliIo): Command =>
  new Command('broker').description('run a broker').addCommand(
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
      .option(
        '--longest-wait <seconds>',
        'answer ?wait= after this long at most; for proxies that cut sooner',
        waitSeconds,
      )
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
      .action((options: ServeOptions) => serve(io, options)),
  );

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
    ...(options.longestWait !== undefined && { longestWaitSeconds: options.longestWait }),
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
    io.stdout.write(`CA ${caFile}, SHA-256 ${caHash}\n`);
    if (adminKey !== undefined) io.stdout.write(`admin key, shown this once: ${adminKey}\n`);
    if (operatorKey !== undefined) io.stdout.write(`operator key, shown this once: ${operatorKey}\n`);
    io.stdout.write(`log in with:\n  isthmus login ${url} --ca-hash ${caHash} --key ${adminKey ?? 'KEY'}\n`);
  }
  try {
    await Promise.race([untilAborted(io.signal), broker.failed]);
  } finally {
    await broker.close();
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
