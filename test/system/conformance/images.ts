/** Images under the names that Kubernetes' own suite asks for, made of its own programs and of Debian's; nothing is pulled. */
import { readFileSync } from 'node:fs';
import { withLibraries } from '#scripts/image/agent-files.ts';
import type { ImageConfig, ImageFile } from '#scripts/image/oci.ts';
import { type DebianTree, ensureDebianTree, findInTree } from '#scripts/setup/debian-tree.ts';
import { runCommand } from '#scripts/setup/run-command.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { agnhostFiles, buildAgnhost, buildNonewprivs, buildWorkload } from '#test/testbed/build.ts';
import { emptyFolders, imageTarOf } from '#test/testbed/images.ts';

/** The suite takes its registries from a file, so that its images have names of ours. */
const registry = 'isthmus.test/suite';
/** As the suite reads it, from the file that the variable KUBE_TEST_REPO_LIST names. */
export const registries: Readonly<Record<string, string>> = {
  gcAuthenticatedRegistry: `${registry}/nowhere`,
  promoterE2eRegistry: registry,
  buildImageRegistry: registry,
  invalidRegistry: `${registry}/nowhere`,
  gcEtcdRegistry: registry,
  gcRegistry: registry,
  sigStorageRegistry: registry,
  privateRegistry: `${registry}/nowhere`,
  dockerLibraryRegistry: registry,
  cloudProviderGcpRegistry: registry,
};

const text = (value: string): Buffer => Buffer.from(value);
const file = (path: string, content: Buffer, mode = 0o755): ImageFile => ({ path, mode, content });

const accounts = (users: readonly string[], groups: readonly string[]): ImageFile[] => [
  file('/etc/passwd', text(`root:x:0:0:root:/root:/bin/sh\n${users.map((user) => `${user}\n`).join('')}`), 0o644),
  file('/etc/group', text(`root:x:0:\n${groups.map((group) => `${group}\n`).join('')}`), 0o644),
  { path: '/root', mode: 0o700, directory: true },
];

/** Debian's program, or why the image cannot be made. */
function programOf(debian: DebianTree, path: string): Buffer {
  const found = findInTree(debian, path);
  if (found === undefined) throw new AppError('host_unsupported', `no Debian package has ${path}`);
  return readFileSync(found.file);
}

/** With the libraries that they link to. */
function linked(debian: DebianTree, programs: ReadonlyMap<string, Buffer>): ImageFile[] {
  const take = (wanted: string): Buffer | undefined => {
    const found = findInTree(debian, wanted);
    return found && readFileSync(found.file);
  };
  return [...withLibraries(programs, 'amd64', take)].map(([path, content]) => file(path, content));
}

/** Debian's busybox has a shell that drops variables whose names are no words, which pods may have; that of the suite's image passes them on. */
const notApplets = new Set(['busybox', 'sh', 'ash']);

/** A shell and the usual programs. */
async function busyboxFiles(debian: DebianTree): Promise<ImageFile[]> {
  const found = findInTree(debian, '/bin/busybox');
  if (found === undefined) throw new AppError('host_unsupported', 'the Debian package busybox has no /bin/busybox');
  const applets = (await runCommand(found.file, ['--list']))
    .split('\n')
    .filter((name) => name && !notApplets.has(name));
  const programs = new Map([
    ['/bin/busybox', readFileSync(found.file)],
    ['/bin/bash', programOf(debian, '/bin/bash')],
  ]);
  return [
    ...linked(debian, programs),
    { path: '/bin/sh', mode: 0o777, linkTo: 'bash' },
    ...applets.map((name): ImageFile => ({ path: `/bin/${name}`, mode: 0o777, linkTo: 'busybox' })),
    ...emptyFolders,
  ];
}

const path = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };

/** A web server that serves one page, where the suite's server of that name has its pages. */
const webServer = (folder: string): { readonly config: ImageConfig; readonly more: readonly ImageFile[] } => ({
  config: {
    env: path,
    entrypoint: ['/bin/httpd'],
    command: ['-f', '-p', '80', '-h', folder],
    exposedPorts: ['80/tcp'],
  },
  more: [file(`${folder}/index.html`, text('<html><body><h1>It works!</h1></body></html>\n'), 0o644)],
});

/** Paths of their tars, for `importImage`. */
export async function suiteImages(cache: string, log: (line: string) => void): Promise<readonly string[]> {
  const debian = await ensureDebianTree({
    architecture: 'amd64',
    packages: ['bash', 'bind9-dnsutils', 'busybox', 'coreutils', 'curl', 'iproute2', 'libc-bin', 'netcat-openbsd'],
    cache,
    log,
  });
  const [agnhost, nonewprivs, workload] = [
    await buildAgnhost({ cache, log }),
    await buildNonewprivs({ cache, log }),
    await buildWorkload({ cache, log }),
  ].map((binary) => readFileSync(binary));
  if (agnhost === undefined || nonewprivs === undefined || workload === undefined)
    throw new TypeError('a program was not built');
  const shell = await busyboxFiles(debian);
  const plain = [...shell, ...accounts([], [])];
  const tools = new Map(
    [
      ['/usr/bin/curl', '/usr/bin/curl'],
      ['/usr/bin/dig', '/usr/bin/dig'],
      ['/usr/bin/getent', '/usr/bin/getent'],
      ['/usr/bin/nc', '/bin/nc.openbsd'],
      ['/usr/bin/ss', '/bin/ss'],
    ].map(([to = '', from = '']) => [to, programOf(debian, from)]),
  );
  const usual: ImageConfig = { env: path, command: ['/bin/sh'] };
  const image = (name: string, config: ImageConfig, files: readonly ImageFile[]): Promise<string> =>
    imageTarOf(cache, `${registry}/${name}`, config, files);
  const [apache, nginx] = [webServer('/usr/local/apache2/htdocs'), webServer('/usr/share/nginx/html')];
  return await Promise.all([
    image('agnhost:2.56', { env: path, entrypoint: ['/agnhost'], command: ['pause'] }, [
      ...shell.filter(({ path: at }) => at !== '/bin/nc'),
      ...linked(debian, tools),
      ...accounts(
        ['user-defined-in-image:x:1000:1000::/home:/bin/sh'],
        ['user-defined-in-image:x:1000:', 'group-defined-in-image:x:50000:user-defined-in-image'],
      ),
      file('/agnhost', agnhost),
      ...[...(await agnhostFiles({ cache, log }))].map(([name, content]) => file(`/${name}`, content, 0o644)),
      { path: '/agnhost-2', mode: 0o777, linkTo: 'agnhost' },
      { path: '/uploads', mode: 0o777, directory: true },
    ]),
    image('busybox:1.37.0-1', usual, plain),
    // Of what that image has, the specs of storage use the shell, and flags of dd that busybox's lacks; those of DNS ask by these two.
    image('jessie-dnsutils:1.7', usual, [
      ...plain.filter(({ path: at }) => at !== '/bin/dd'),
      ...linked(
        debian,
        new Map(['/bin/dd', '/usr/bin/dig', '/usr/bin/getent'].map((name) => [name, programOf(debian, name)])),
      ),
    ]),
    image('nonroot:1.4', { ...usual, user: '1234' }, plain),
    image('nonewprivs:1.3', { env: path, command: ['nnp'] }, [
      ...plain,
      file('/usr/local/bin/nnp', nonewprivs, 0o6755),
    ]),
    ...['2.4.38-4', '2.4.39-4'].map((tag) => image(`httpd:${tag}`, apache.config, [...plain, ...apache.more])),
    ...['1.14-4', '1.15-4'].map((tag) => image(`nginx:${tag}`, nginx.config, [...plain, ...nginx.more])),
    image('pause:3.10.1', { entrypoint: ['/bin/workload', 'pause'] }, [
      file('/bin/workload', workload),
      ...emptyFolders,
    ]),
  ]);
}
