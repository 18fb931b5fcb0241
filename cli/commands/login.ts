/** isthmus login: remembers which broker to talk to, as whom, and how to recognise it. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { type BrokerClient, createBrokerClient } from '#cli/broker/broker-client.ts';
import { isOperatorKey, type Login, loadLogin, saveLogin } from '#cli/broker/login-config.ts';
import { deviceFlow } from '#cli/broker/provider-login/device-flow.ts';
import { claimsOf, expiryOf } from '#cli/broker/provider-login/id-token.ts';
import { sha256Of, trustBroker } from '#cli/broker/trust.ts';
import type { CliIo } from '#cli/output/io.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';

interface LoginOptions {
  readonly key?: string;
  readonly issuer?: string;
  readonly clientId?: string;
  readonly tenant?: string;
  readonly caFile?: string;
  readonly caHash?: string;
}

export const loginCommand = (io: CliIo): Command =>
  new Command('login')
    .argument('<url>', 'URL of the broker, https://HOST:PORT')
    .option('--key <key>', 'API key or operator key; - reads it from standard input')
    .option('--issuer <url>', 'instead of a key: identity provider that the tenant has registered (device flow)')
    .option('--client-id <id>', 'client of this command line at the provider: public, with the device flow enabled')
    .option('--tenant <name>', 'tenant to log in to by the provider')
    .option('--ca-hash <sha256>', "SHA-256 of the broker's CA certificate, when no trusted CA signed it")
    .option('--ca-file <file>', "the broker's CA certificate, as an alternative to its hash")
    .addHelpText(
      'after',
      `
Without --key, the command names a page and a code: open it in any browser, log in there and consent. --issuer, --client-id and --tenant are
remembered with the login, so \`isthmus login URL\` is enough the next time.

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
  const target = url.href.replace(/\/+$/, '');
  const earlier = await loadLogin(io).catch(() => undefined);
  const known = earlier?.url === target ? earlier : undefined;
  const proof = proofOf(options, known);
  const caPem = options.caFile
    ? await readCa(options.caFile)
    : options.caHash === undefined && known?.caPem !== undefined && proof.kind === 'provider'
      ? known.caPem
      : await trustBroker(url, options.caHash === undefined ? {} : { caHash: options.caHash });
  const found: Login = {
    url: target,
    ...(caPem !== undefined && { caPem }),
    ...(proof.kind === 'key' ? { key: await readKey(io, proof.key) } : await byProvider(io, proof)),
  };
  // Without the provider: a token that has just been given is not renewed before it is saved, however soon it ends.
  const { provider: _, ...proven } = found;
  const broker = createBrokerClient(io, proven);
  try {
    const principal = await principalOf(broker, found);
    const file = await saveLogin(io, found);
    io.stdout.write(`logged in to ${target} as ${principal}\n`);
    if (caPem !== undefined) io.stderr.write(`trusting the broker by its CA, SHA-256 ${sha256Of(caPem)}\n`);
    io.stderr.write(`saved in ${file}${proof.kind === 'key' ? `; key ${fingerprint(found.key)}` : ''}\n`);
  } finally {
    broker.close();
  }
}

type Proof =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'provider'; readonly issuer: string; readonly clientId: string; readonly tenant: string };

/** Options that are not given come from the last login at this broker by a provider. */
function proofOf({ key, ...given }: LoginOptions, known: Login | undefined): Proof {
  const named = Object.entries({ issuer: given.issuer, 'client-id': given.clientId, tenant: given.tenant });
  if (key !== undefined) {
    const other = named.find(([, value]) => value !== undefined);
    if (other === undefined) return { kind: 'key', key };
    throw new AppError('fields_conflict', `--key and --${other[0]} exclude each other: a key names its tenant`, {
      detail: { field: other[0], remedy: 'log in with --key, or with --issuer, --client-id and --tenant' },
    });
  }
  const issuer = given.issuer ?? known?.provider?.issuer;
  const clientId = given.clientId ?? known?.provider?.clientId;
  const tenant = given.tenant ?? known?.tenant;
  if (issuer !== undefined && clientId !== undefined && tenant !== undefined) {
    return { kind: 'provider', issuer, clientId, tenant };
  }
  const missing = Object.entries({ issuer, 'client-id': clientId, tenant }).flatMap(([name, value]) =>
    value === undefined ? [`--${name}`] : [],
  );
  throw new AppError('invalid_input', `a login needs --key, or an identity provider: ${missing.join(', ')} not given`, {
    detail: {
      field: 'key',
      remedy:
        'log in with `isthmus login URL --key KEY`, or with `isthmus login URL --issuer URL --client-id ID --tenant NAME`',
    },
  });
}

const readKey = async (io: CliIo, key: string): Promise<string> => (key === '-' ? await io.readStdin() : key).trim();

async function byProvider(
  io: CliIo,
  { issuer, clientId, tenant }: Extract<Proof, { readonly kind: 'provider' }>,
): Promise<Pick<Login, 'key' | 'tenant' | 'provider'>> {
  const { idToken, refreshToken } = await deviceFlow(io, issuer, clientId);
  const expiresAt = expiryOf(idToken);
  return { key: idToken, tenant, provider: { issuer, clientId, expiresAt, ...(refreshToken && { refreshToken }) } };
}

/** Operators are in no tenant: what they may do is the proof. */
async function principalOf(broker: BrokerClient, { key, tenant, provider }: Login): Promise<string> {
  if (isOperatorKey(key)) {
    await broker.api.listTenants({ query: { limit: 1 } });
    return 'operator of the broker';
  }
  try {
    const me = await broker.api.getMe();
    return `tenant ${me.tenant}, role ${me.role}`;
  } catch (cause) {
    if (provider === undefined || codeOf(cause) !== 'unauthenticated') throw cause;
    const { sub, email } = claimsOf(key);
    throw new AppError('unauthenticated', `tenant ${tenant} lets ${email ?? sub} of ${provider.issuer} not in`, {
      cause,
      detail: {
        remedy: `an admin of the tenant registers the provider (\`isthmus tenant issuer add ${provider.issuer} --audience ${provider.clientId}\`) and adds you: \`isthmus member add --issuer ${provider.issuer} --subject ${sub} --role viewer\``,
      },
    });
  }
}

/** Enough to tell keys apart, nothing to guess them from. */
const fingerprint = (key: string): string => `…${createHash('sha256').update(key).digest('hex').slice(0, 8)}`;
