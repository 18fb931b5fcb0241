import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { connectInCluster } from './connection.ts';
import { connectKubeconfig } from './kubeconfig.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'isthmus-kubeconfig-'));
afterAll(() => rmSync(folder, { recursive: true }));

const pem = Buffer.from('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n').toString('base64');
const kubeconfig = (cluster: object, user: object, more: object = {}): string =>
  JSON.stringify({
    'current-context': 'here',
    contexts: [
      { name: 'here', context: { cluster: 'c', user: 'u', namespace: 'apps' } },
      { name: 'there', context: { cluster: 'd', user: 'u' } },
    ],
    clusters: [
      { name: 'c', cluster: { server: 'https://192.0.2.1:6443', ...cluster } },
      { name: 'd', cluster: { server: 'https://[2001:db8::1]/prefix/' } },
    ],
    users: [{ name: 'u', user }],
    ...more,
  });

describe('a kubeconfig', () => {
  test.each([
    { what: 'a token', user: { token: 'abc' }, headers: { authorization: 'Bearer abc' } },
    { what: 'a password', user: { username: 'a', password: 'b' }, headers: { authorization: 'Basic YTpi' } },
    {
      what: 'impersonation',
      user: { token: 't', as: 'bob' },
      headers: { authorization: 'Bearer t', 'impersonate-user': 'bob' },
    },
    { what: 'nothing', user: {}, headers: {} },
  ])('with $what sends it along', async ({ user, headers }) => {
    const connection = await connectKubeconfig(kubeconfig({}, user));
    expect(connection.headers()).toEqual(headers);
    expect(connection.namespace).toBe('apps');
    expect(connection.server.href).toBe('https://192.0.2.1:6443/');
  });

  test('reaches another of its contexts by name', async () => {
    const connection = await connectKubeconfig(kubeconfig({}, {}), { context: 'there' });
    expect(connection.server.href).toBe('https://[2001:db8::1]/prefix/');
  });

  test.each([
    { what: 'no YAML', text: 'a: b: c', field: 'kubeconfig' },
    { what: 'an empty file', text: '', field: 'kubeconfig' },
    { what: 'no context chosen', text: '{"contexts":[]}', field: 'current-context' },
    { what: 'an unknown context', text: kubeconfig({}, {}, { 'current-context': 'x' }), field: 'contexts' },
    { what: 'an unknown cluster', text: kubeconfig({}, {}, { clusters: [] }), field: 'clusters' },
    { what: 'no server', text: kubeconfig({ server: '' }, {}), field: 'clusters[c].cluster.server' },
    { what: 'a server that is no URL', text: kubeconfig({ server: 'milan' }, {}), field: 'clusters[c].cluster.server' },
    {
      what: 'a SOCKS proxy',
      text: kubeconfig({ 'proxy-url': 'socks5://p' }, {}),
      field: 'clusters[c].cluster.proxy-url',
    },
    {
      what: 'an authority that is no PEM',
      text: kubeconfig({ 'certificate-authority-data': 'AAAA' }, {}),
      field: 'clusters[c].cluster.certificate-authority-data',
    },
    {
      what: 'a certificate without its key',
      text: kubeconfig({}, { 'client-certificate-data': pem }),
      field: 'users[u].user.client-key-data',
    },
    { what: 'a token that is a number', text: kubeconfig({}, { token: 5 }), field: 'users[u].user.token' },
    {
      what: 'impersonated groups',
      text: kubeconfig({}, { as: 'a', 'as-groups': ['g'] }),
      field: 'users[u].user.as-groups',
    },
  ])('with $what is refused, naming $field', async ({ text, field }) => {
    await expect(connectKubeconfig(text)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining(field),
      detail: { field },
    });
  });

  test.each([
    { field: 'users[u].user.exec', user: { exec: { command: 'touch', args: ['/tmp/never'] } }, cluster: {} },
    { field: 'users[u].user.auth-provider', user: { 'auth-provider': { name: 'gcp' } }, cluster: {} },
    { field: 'users[u].user.tokenFile', user: { tokenFile: '/etc/hostname' }, cluster: {} },
    {
      field: 'users[u].user.client-certificate',
      user: { 'client-certificate': '/a', 'client-key': '/b' },
      cluster: {},
    },
    { field: 'clusters[c].cluster.certificate-authority', user: {}, cluster: { 'certificate-authority': '/a' } },
  ])('that comes from a cluster is refused for its $field, for any content of the file or program', async (row) => {
    await expect(connectKubeconfig(kubeconfig(row.cluster, row.user), { isFromCluster: true })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(/would run a program or read a file of the agent/),
      detail: { field: row.field },
    });
  });

  test('that comes from a cluster with its credentials inside is taken', async () => {
    const connection = await connectKubeconfig(kubeconfig({}, { token: 'abc' }), { isFromCluster: true });
    expect(connection.headers()).toEqual({ authorization: 'Bearer abc' });
    connection.close();
  });

  test('whose token lies in a file beside it is read from there', async () => {
    writeFileSync(path.join(folder, 'token'), 'from-file');
    const connection = await connectKubeconfig(kubeconfig({}, { tokenFile: 'token' }), { directory: folder });
    expect(connection.headers()).toEqual({ authorization: 'Bearer from-file' });
    connection.close();
  });

  test('that runs a plugin sends what the plugin answers', async () => {
    const answer = JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'from-plugin' },
    });
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'printf', args: ['%s', answer] };
    const connection = await connectKubeconfig(kubeconfig({}, { exec: { ...exec, interactiveMode: 'Never' } }));
    expect(connection.headers()).toEqual({ authorization: 'Bearer from-plugin' });
    connection.close();
  });

  test('whose plugin is due runs it once, however many requests wait for what it answers', async () => {
    const runs = path.join(folder, 'runs');
    const answer = JSON.stringify({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'from-plugin' },
    });
    const args = ['-c', `echo run >> ${runs}; printf %s '${answer}'`];
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args, interactiveMode: 'Never' };
    const clock = new ManualClock();
    const connection = await connectKubeconfig(kubeconfig({}, { exec }), { clock });
    await connection.authorize();
    expect(readFileSync(runs, 'utf8')).toBe('run\n');
    clock.advance(30_000);
    await Promise.all(Array.from({ length: 5 }, () => connection.authorize()));
    expect(readFileSync(runs, 'utf8')).toBe('run\nrun\n');
    connection.close();
  });

  test('whose plugin fails says which context has no credentials', async () => {
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'false', interactiveMode: 'Never' };
    await expect(connectKubeconfig(kubeconfig({}, { exec }))).rejects.toMatchObject({
      code: 'kube_unauthorized',
      message: expect.stringContaining('context here'),
    });
  });
});

describe('inside a cluster', () => {
  test('the token is read again each minute, and one that is just being written is not taken', () => {
    for (const [file, text] of Object.entries({ token: 'one\n', 'ca.crt': 'CA', namespace: 'liqo' })) {
      writeFileSync(path.join(folder, file), text);
    }
    const clock = new ManualClock();
    const connection = connectInCluster({ directory: folder, host: 'fd00::1', port: '6443', clock });
    expect(connection).toMatchObject({ namespace: 'liqo', ca: 'CA' });
    expect(connection.server.host).toBe('[fd00::1]:6443');
    writeFileSync(path.join(folder, 'token'), 'two');
    clock.advance(59_000);
    expect(connection.headers()).toEqual({ authorization: 'Bearer one' });
    clock.advance(1_000);
    expect(connection.headers()).toEqual({ authorization: 'Bearer two' });
    // A writer may truncate the file a moment before it writes.
    writeFileSync(path.join(folder, 'token'), '');
    clock.advance(60_000);
    expect(connection.headers()).toEqual({ authorization: 'Bearer two' });
    connection.close();
  });

  test('a process that is in no pod is told so', () => {
    expect(() => connectInCluster({ directory: path.join(folder, 'absent') })).toThrow(/does not run in a pod/);
  });
});
