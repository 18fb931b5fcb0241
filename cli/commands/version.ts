/** isthmus version. */

import { Command, Option } from 'commander';
import type { CliIo } from '#cli/output/io.ts';
import { agentImage, version } from '#cli/output/version.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';

const patienceMs = 3_000;

export const versionCommand = (io: CliIo): Command =>
  new Command('version')
    .option('--client', 'this program only; makes no request')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'yaml']).default('text'))
    .action(async ({ client, output }: { client?: boolean; output: 'text' | 'json' | 'yaml' }) => {
      const broker = client ? undefined : await brokerVersion(io);
      if (output !== 'text') {
        const { printObject } = await import('#cli/output/print.ts');
        return printObject(io, output, { client: version, agentImage, ...(broker && { broker }) });
      }
      io.stdout.write(`isthmus ${version}\n`);
      if (broker) io.stdout.write(`broker ${broker.version ?? `unknown: ${broker.problem}`} at ${broker.url}\n`);
    });

/** Undefined when not logged in; never fails, because the version of this program is what was asked for. */
async function brokerVersion(io: CliIo): Promise<{ url: string; version?: string; problem?: string } | undefined> {
  const [{ createBrokerClient }, { loadLogin }] = await Promise.all([
    import('#cli/broker/broker-client.ts'),
    import('#cli/broker/login-config.ts'),
  ]);
  const login = await loadLogin(io).catch(() => undefined);
  if (login === undefined) return undefined;
  const impatient = { ...io, signal: abortsWith(io.signal, AbortSignal.timeout(patienceMs)) };
  const broker = createBrokerClient(impatient, login);
  try {
    const health = await broker.api.getHealth();
    return { url: login.url, version: health.version };
  } catch (error) {
    return { url: login.url, problem: (error as Error).message };
  } finally {
    broker.close();
  }
}
