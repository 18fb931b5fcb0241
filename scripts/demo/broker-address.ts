/** Where a broker on this machine is reached by clusters: the address from which this machine reaches their API servers. */
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import * as yaml from 'yaml';
import { AppError } from '#shared/errors/app-error.ts';

const connectMs = 5_000;

/** URL of the API server in the current context of a kubeconfig. */
export function serverOf(kubeconfig: string, file: string): URL {
  const config = yaml.parse(kubeconfig) as {
    'current-context'?: string;
    contexts?: { name: string; context: { cluster: string } }[];
    clusters?: { name: string; cluster: { server?: string } }[];
  };
  const context = config.contexts?.find(({ name }) => name === config['current-context'])?.context;
  const server = config.clusters?.find(({ name }) => name === context?.cluster)?.cluster.server ?? '';
  if (!URL.canParse(server)) throw new AppError('invalid_input', `${file} names no API server in its current context`);
  return new URL(server);
}

/** Address of this end of a connection to the server. */
function localAddress(server: URL): Promise<string> {
  return new Promise((resolve, reject) => {
    const failed = (why: string) =>
      reject(new AppError('kube_unreachable', `the API server at ${server.origin} does not answer: ${why}`));
    const port = Number(server.port || (server.protocol === 'http:' ? 80 : 443));
    const socket = connect({ host: server.hostname.replace(/^\[|\]$/g, ''), port });
    socket.setTimeout(connectMs, () => {
      socket.destroy();
      failed(`no connection within ${connectMs / 1_000} s`);
    });
    socket.once('error', (error) => failed(error.message));
    socket.once('connect', () => {
      const address = socket.localAddress ?? '';
      socket.destroy();
      resolve(address);
    });
  });
}

const isLoopback = (address: string): boolean => /^(127\.|::1$|::ffff:127\.)/.test(address);
const inUrl = (address: string): string => (address.includes(':') ? `[${address}]` : address);

const give = 'give --broker-address HOST:PORT, an address of this machine that pods of both clusters reach';

/** `HOST:PORT` from the address at this end of a connection to each API server. Fails with `invalid_input` when they are no one address that pods reach. */
export function brokerAddressOf(ends: readonly string[], port: number): string {
  const addresses = [...new Set(ends)];
  const [address = ''] = addresses;
  if (addresses.some(isLoopback)) {
    const message = 'an API server is on loopback, which says nothing of how its pods reach this machine';
    throw new AppError('invalid_input', `${message}: ${give}`);
  }
  if (addresses.length !== 1) {
    const message = `this machine reaches the two API servers from different addresses, ${addresses.join(' and ')}`;
    throw new AppError('invalid_input', `${message}: ${give}`);
  }
  return `${inUrl(address)}:${port}`;
}

export async function brokerAddressFor(kubeconfigs: readonly string[], port: number): Promise<string> {
  const servers = await Promise.all(kubeconfigs.map(async (file) => serverOf(await readFile(file, 'utf8'), file)));
  return brokerAddressOf(await Promise.all(servers.map(localAddress)), port);
}
