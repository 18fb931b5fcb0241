import { execFile } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { connections, leftBehind } from './left-behind.ts';

/** Of a process, when this script calls `tell`. */
async function resourcesOf(script: string): Promise<string[]> {
  const tell =
    'const tell = () => setImmediate(() => { console.log(JSON.stringify(process.getActiveResourcesInfo())); process.exit(); })';
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', `${tell}; ${script}`]);
  return JSON.parse(stdout) as string[];
}

const server = "const net = require('node:net'); const server = net.createServer().listen(0, '127.0.0.1')";
const client = "const connect = () => net.connect(server.address().port, '127.0.0.1', seen)";
const program = "const child = require('node:child_process').spawn('sleep', ['9'], { stdio: 'ignore' })";

test('both ends of a connection are left behind, and a program is', async () => {
  const whenBoth = 'let ends = 0; const seen = () => { ends += 1; if (ends === 2) tell(); }';
  const opened = "server.unref().on('connection', seen).once('listening', connect)";
  expect(leftBehind(await resourcesOf([whenBoth, server, client, opened].join('; ')))).toBe('2 of TCPSocketWrap');
  const ends = "process.once('exit', () => child.kill()); child.once('spawn', tell)";
  expect(leftBehind(await resourcesOf(`${program}; ${ends}`))).toBe('1 of ProcessWrap');
});

test('what keeps no process alive is not, and neither are the pipes and timers of the process itself', async () => {
  expect(leftBehind(await resourcesOf(`${server}; server.once('listening', () => tell(server.unref()))`))).toBe('');
  expect(leftBehind(['PipeWrap', 'PipeWrap', 'Timeout', 'TTYWrap'])).toBe('');
});

test('a connection is named by both of its ends', async () => {
  const listener = net.createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as net.AddressInfo;
  const socket = net.connect(port, '127.0.0.1');
  await once(socket, 'connect');
  expect(connections().split(', ')).toContain(`${socket.localPort} - 127.0.0.1:${port}`);
  socket.destroy();
  listener.close();
});
