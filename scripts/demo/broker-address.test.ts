import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { brokerAddressFor, brokerAddressOf, serverOf } from './broker-address.ts';

const kubeconfig = (server: string) =>
  `current-context: b
contexts: [{name: a, context: {cluster: x}}, {name: b, context: {cluster: y}}]
clusters: [{name: x, cluster: {server: "https://other"}}, {name: y, cluster: {server: "${server}"}}]
`;
let dir: string;
let server: Server;
const file = async (name: string, text: string): Promise<string> => {
  await writeFile(path.join(dir, name), text);
  return path.join(dir, name);
};
const port = () => (server.address() as AddressInfo).port;
beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-demo-'));
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  server.close();
  await rm(dir, { recursive: true, force: true });
});

test('the API server is that of the current context', () => {
  expect(serverOf(kubeconfig('https://10.0.0.1:6443'), 'f').origin).toBe('https://10.0.0.1:6443');
  expect(() => serverOf('kind: Config', 'f')).toThrow('f names no API server in its current context');
});

test.each([
  { ends: ['192.0.2.7', '192.0.2.7'], says: '192.0.2.7:7443' },
  { ends: ['2001:db8::7', '2001:db8::7'], says: '[2001:db8::7]:7443' },
])('the broker listens where this machine meets both clusters: $says', ({ ends, says }) => {
  expect(brokerAddressOf(ends, 7443)).toBe(says);
});

test.each([
  { ends: ['192.0.2.7', '198.51.100.7'], says: 'different addresses, 192.0.2.7 and 198.51.100.7' },
  { ends: ['192.0.2.7', '127.0.0.1'], says: 'on loopback' },
  { ends: ['::1'], says: 'on loopback' },
])('$ends are no address for both clusters', ({ ends, says }) => {
  expect(() => brokerAddressOf(ends, 7443)).toThrow(says);
  expect(() => brokerAddressOf(ends, 7443)).toThrow('give --broker-address HOST:PORT');
});

test('an API server on loopback does not tell, and one that is not there is named', async () => {
  const loopback = await file('d', kubeconfig(`https://127.0.0.1:${port()}`));
  await expect(brokerAddressFor([loopback], 7443)).rejects.toThrow('is on loopback');
  const closed = await file('e', kubeconfig('https://127.0.0.1:1'));
  await expect(brokerAddressFor([closed], 7443)).rejects.toThrow('https://127.0.0.1:1 does not answer');
});
