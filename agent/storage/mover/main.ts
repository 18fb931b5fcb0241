/**
 * Entry of the pods that move a volume: `serve` sends it, `live HOST [BYTES-PER-SECOND]` and `final HOST [BYTES-PER-SECOND]` fetch it from there, `dial HOST COMMAND` is what rsync calls
 * as its remote shell. Its environment is for tests: in pods everything is where it is expected.
 */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type MoverResult, type PullDeps, pullFinal, pullLive } from './pull.ts';
import { askChecksum, dial, greet, type Identity, moverDevice, moverPort, serveVolume } from './transport.ts';

const env = process.env;
const data = env.ISTHMUS_MOVER_DATA ?? (existsSync(moverDevice) ? moverDevice : '/data/');
const port = Number(env.ISTHMUS_MOVER_PORT ?? moverPort);
const rsync = env.ISTHMUS_MOVER_RSYNC ?? 'rsync';
const terminationLog = env.ISTHMUS_MOVER_RESULT ?? '/dev/termination-log';
const read = (name: string): string => readFileSync(`${env.ISTHMUS_MOVER_KEYS ?? '/tls'}/${name}`, 'utf8');
const identity = (): Identity => ({
  certificate: read('own.crt'),
  privateKey: read('own.key'),
  peer: read('peer.crt'),
});

const [role, host = '', ...command] = process.argv.slice(2);
const deps = (): PullDeps => ({
  clock: systemClock,
  way: {
    program: [process.execPath, process.argv[1] ?? ''],
    host,
    from: env.ISTHMUS_MOVER_SOURCE ?? data,
    to: data,
    isDevice: statSync(data).isBlockDevice(),
    bytesPerSecond: command[0] === undefined ? undefined : Number(command[0]),
  },
  rsync,
  greet: () => greet(identity(), host, port),
  checksum: (signal) => askChecksum(identity(), { host, port, clock: systemClock }, signal),
  report: (progress) => void process.stdout.write(`${JSON.stringify(progress)}\n`),
});

function finish(result: MoverResult): void {
  writeFileSync(terminationLog, JSON.stringify(result));
  process.stdout.write(`${JSON.stringify(result)}\n`);
  process.exitCode = result.ok ? 0 : 1;
}

// rsync that gives up ends its remote shell with SIGUSR1, at which Node would open a debugger.
for (const name of ['SIGTERM', 'SIGINT', 'SIGUSR1'] as const) process.once(name, () => process.exit(0));
switch (role) {
  case 'serve':
    await serveVolume(identity(), { port, source: data, rsync, clock: systemClock });
    break;
  case 'live':
    finish(await pullLive(deps()));
    break;
  case 'final':
    finish(await pullFinal(deps()));
    break;
  case 'dial':
    await dial(identity(), host, port, command).then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${host}: ${error}\n`);
        process.exit(255);
      },
    );
    break;
  default:
    process.stderr.write(
      'accepted: serve, live HOST [BYTES-PER-SECOND], final HOST [BYTES-PER-SECOND], dial HOST COMMAND\n',
    );
    process.exitCode = 2;
}
