import { execFile } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { connections, leftBehind } from './left-behind.ts';

/** Of a process that has run this. */
async function resourcesOf(script: string): Promise<string[]> {
  const tell =
    'setTimeout(() => { console.log(JSON.stringify(process.getActiveResourcesInfo())); process.exit(); }, 50)';
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', `${script}; ${tell}`]);
  return JSON.parse(stdout) as string[];
}

const server = "const net = require('node:net'); const server = net.createServer().listen(0, '127.0.0.1')";
const client = "server.once('listening', () => { client = net.connect(server.address().port); server.unref() })";
const program = "const child = require('node:child_process').spawn('sleep', ['9'], { stdio: 'ignore' })";

test('both ends of a connection and a program are left behind', async () => {
  expect(leftBehind(await resourcesOf(`${server}; let client; ${client}`))).toBe('2 of TCPSocketWrap');
  expect(leftBehind(await resourcesOf(`${program}; process.once('exit', () => child.kill())`))).toBe(
    '1 of ProcessWrap',
  );
});

test('what keeps no process alive is not, and neither are the pipes and timers of the process itself', async () => {
  expect(leftBehind(await resourcesOf(`${server}; server.unref()`))).toBe('');
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
