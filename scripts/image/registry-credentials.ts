/** Where `docker login` keeps credentials, and how they are asked of its helper programs. What is read here is never printed. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';

export type Credentials =
  | { readonly username: string; readonly password: string }
  /** Exchanged for an access token where the registry says. */
  | { readonly identityToken: string };

interface Entry {
  readonly auth?: string;
  readonly username?: string;
  readonly password?: string;
  readonly identitytoken?: string;
}

interface DockerConfig {
  readonly auths?: Readonly<Record<string, Entry>>;
  readonly credsStore?: string;
  readonly credHelpers?: Readonly<Record<string, string>>;
}

/** Asks the program `docker-credential-NAME`; rejects when it has nothing for this registry. */
export type CredentialHelper = (name: string, registry: string) => Promise<string>;

const runCredentialHelper: CredentialHelper = (name, registry) =>
  runCommand(`docker-credential-${name}`, ['get'], { input: registry, timeoutMs: 30_000 });

/** `config.json` of docker, podman's with the same content included. */
export const dockerConfigFile = (env: NodeJS.ProcessEnv, home: string): string =>
  path.join(env.DOCKER_CONFIG || path.join(home, '.docker'), 'config.json');

/** Undefined: the registry is asked without credentials. `registry` is HOST or HOST:PORT. */
export async function credentialsFor(
  registry: string,
  file: string,
  helper: CredentialHelper = runCredentialHelper,
): Promise<Credentials | undefined> {
  const config = read(file);
  const store = config.credHelpers?.[registry] ?? config.credsStore;
  if (store !== undefined && store !== '') {
    const answer = await ask(helper, store, registry);
    if (answer !== undefined) return answer;
  }
  const names = [registry, `https://${registry}`, `https://${registry}/v1/`, `https://${registry}/v2/`];
  const entry = names.map((name) => config.auths?.[name]).find((found) => found !== undefined);
  return entry === undefined ? undefined : credentialsOf(entry);
}

function read(file: string): DockerConfig {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
  try {
    return JSON.parse(text) as DockerConfig;
  } catch {
    // The parser's own message quotes the text.
    throw new AppError('invalid_input', `${file} is not valid JSON`, {
      detail: { field: 'DOCKER_CONFIG', value: file },
    });
  }
}

function credentialsOf({ auth, username, password, identitytoken }: Entry): Credentials | undefined {
  if (identitytoken !== undefined && identitytoken !== '') return { identityToken: identitytoken };
  if (username !== undefined && password !== undefined) return { username, password };
  const [name, ...rest] = Buffer.from(auth ?? '', 'base64')
    .toString('utf8')
    .split(':');
  return name === undefined || name === '' || rest.length === 0
    ? undefined
    : { username: name, password: rest.join(':').replace(/\0+$/, '') };
}

async function ask(helper: CredentialHelper, store: string, registry: string): Promise<Credentials | undefined> {
  let text: string;
  try {
    text = await helper(store, registry);
  } catch (error) {
    if (/credentials not found/.test((error as Error).message)) return undefined;
    // What it printed may be a secret.
    throw new AppError(
      'command_failed',
      `docker-credential-${store} failed for ${registry}: try \`echo ${registry} | docker-credential-${store} get\``,
    );
  }
  let found: { readonly Username?: string; readonly Secret?: string };
  try {
    found = JSON.parse(text) as typeof found;
  } catch {
    throw new AppError('command_failed', `the credential helper docker-credential-${store} answers with no JSON`);
  }
  const { Username: username = '', Secret: password = '' } = found;
  return username === '<token>' ? { identityToken: password } : { username, password };
}
