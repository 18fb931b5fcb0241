/** isthmus login: remembers which broker to talk to, as whom, and how to recognise it. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { type BrokerClient, createBrokerClient } from '#cli/broker/broker-client.ts';
import { isOperatorKey, saveLogin } from '#cli/broker/login-config.ts';
import { sha256Of, trustBroker } from '#cli/broker/trust.ts';
import type { CliIo } from '#cli/output/io.ts';
import { AppError } from '#shared/errors/app-error.ts';

interface LoginOptions {
  readonly key: string;
  readonly caFile?: string;
  readonly caHash?: string;
}

export const loginCommand = (io: CliIo): Command =>
  new Command('login')
    .description('log in to a broker; `isthmus broker serve` prints the line to paste')
    .argument('<url>', 'URL of the broker, https://HOST:PORT')
    .requiredOption('--key <key>', 'API key or operator key; - reads it from standard input')
    .option('--ca-hash <sha256>', "SHA-256 of the broker's CA certificate, when no trusted CA signed it")
    .option('--ca-file <file>', "the broker's CA certificate, as an alternative to its hash")
    .addHelpText(
      'after',
      `
The login is kept in $ISTHMUS_CONFIG, else $XDG_CONFIG_HOME/isthmus/config.json, else ~/.config/isthmus/config.json, mode 0600.`,
    )
    .action((url: string, options: LoginOptions) => login(io, url, options));

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:') return url;
  throw new AppError('invalid_input', `the broker URL is ${JSON.stringify(text)}, accepted is https://HOST:PORT`, {
    detail: { field: 'url', value: text },
  });
}

async function readCa(file: string): Promise<string> {
  try {
    const pem = await readFile(file, 'utf8');
    sha256Of(pem);
    return pem;
  } catch (cause) {
    throw new AppError('invalid_input', `${file} is not a readable PEM certificate: ${(cause as Error).message}`, {
      cause,
      detail: {
        field: 'ca-file',
        value: file,
        remedy: 'name the file ca.pem in the data directory of the broker, or use --ca-hash',
      },
    });
  }
}

async function login(io: CliIo, text: string, options: LoginOptions): Promise<void> {
  const url = parseUrl(text);
  const key = (options.key === '-' ? await io.readStdin() : options.key).trim();
  const caPem = options.caFile
    ? await readCa(options.caFile)
    : await trustBroker(url, options.caHash === undefined ? {} : { caHash: options.caHash });
  const target = { url: url.href.replace(/\/+$/, ''), key, ...(caPem !== undefined && { caPem }) };
  const broker = createBrokerClient(io, target);
  try {
    const principal = await principalOf(broker, key);
    const file = await saveLogin(io, target);
    io.stdout.write(`logged in to ${target.url} as ${principal}\n`);
    if (caPem !== undefined) io.stderr.write(`trusting the broker by its CA, SHA-256 ${sha256Of(caPem)}\n`);
    io.stderr.write(`saved in ${file}; key ${fingerprint(key)}\n`);
  } finally {
    broker.close();
  }
}

/** Operators are in no tenant: what they may do is the proof. */
async function principalOf(broker: BrokerClient, key: string): Promise<string> {
  if (isOperatorKey(key)) {
    await broker.api.listTenants({ query: { limit: 1 } });
    return 'operator of the broker';
  }
  const me = await broker.api.getMe();
  return `tenant ${me.tenant}, role ${me.role}`;
}

/** Enough to tell keys apart, nothing to guess them from. */
const fingerprint = (key: string): string => `…${createHash('sha256').update(key).digest('hex').slice(0, 8)}`;
