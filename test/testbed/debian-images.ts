/** Images of Debian's packages: whole packages without their documentation, and the libraries that their programs link to. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { withLibraries } from '#scripts/image/agent-files.ts';
import type { ImageConfig, ImageFile } from '#scripts/image/oci.ts';
import { type DebianPackageFiles, type DebianTree, ensureDebianTree, findInTree } from '#scripts/setup/debian-tree.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { emptyFolders, imageTarOf } from './images.ts';

interface DebianImage {
  readonly reference: string;
  readonly packages: readonly string[];
  /** Packages of which the image has some files only. */
  readonly only: Readonly<Record<string, RegExp>>;
  /** Root when absent. */
  readonly user?: { readonly name: string; readonly id: number };
  /** On the path besides the usual folders. */
  readonly programs?: string;
  /** A shell when absent, which the packages have to include then. */
  readonly entrypoint?: readonly string[];
}

/** What start scripts are written in. */
const shell = ['bash', 'coreutils', 'findutils', 'gawk', 'grep', 'hostname', 'libc-bin', 'procps', 'sed', 'socat'];

const mariadb: DebianImage = {
  reference: 'isthmus.test/mariadb:10.11',
  packages: [
    ...shell,
    ...['galera-4', 'iproute2', 'mariadb-client-core', 'mariadb-common', 'mariadb-server', 'mariadb-server-core'],
    'rsync',
  ],
  only: { 'libc-bin': /^\/usr\/bin\/getent$/, iproute2: /\/s?bin\/(ip|ss)$/, 'mariadb-server': /\/wsrep_sst_[^/]+$/ },
  user: { name: 'mysql', id: 999 },
};

const postgresql: DebianImage = {
  reference: 'isthmus.test/postgresql:15',
  packages: [...shell, 'postgresql-15', 'postgresql-client-15', 'tzdata'],
  // Compiling queries takes a compiler of 100 MB along.
  only: { 'libc-bin': /^\/usr\/bin\/getent$/, 'postgresql-15': /^(?!.*(bitcode|llvmjit))/ },
  user: { name: 'postgres', id: 999 },
  programs: '/usr/lib/postgresql/15/bin',
};

/** By the name that `liqoctl move volume` has for it. */
const restic: DebianImage = {
  reference: 'docker.io/restic/restic:0.14.0',
  packages: ['restic'],
  only: {},
  entrypoint: ['/usr/bin/restic'],
};

/** rclone speaks the protocol of restic's own server, which no package registry has. */
const resticServer: DebianImage = {
  reference: 'isthmus.test/restic-server:1',
  packages: ['rclone'],
  only: {},
  entrypoint: ['/usr/bin/rclone', 'serve', 'restic', '--addr', ':8000', '/data'],
};
export const resticServerImage = resticServer.reference;

const documentation = /^\/usr\/share\/(bash-completion|bug|doc|doc-base|info|lintian|locale|man|menu)\//;

function* filesOf(folder: string, below = '/'): Generator<string> {
  for (const entry of readdirSync(path.join(folder, below), { withFileTypes: true })) {
    const name = path.posix.join(below, entry.name);
    if (entry.isDirectory()) yield* filesOf(folder, name);
    else yield name;
  }
}

function packageFiles({ folder }: DebianPackageFiles, wanted: (name: string) => boolean): ImageFile[] {
  return [...filesOf(folder)]
    .filter((name) => !documentation.test(name) && wanted(name))
    .map((name): ImageFile => {
      const file = path.join(folder, name);
      const entry = lstatSync(file);
      if (entry.isSymbolicLink()) return { path: name, mode: 0o777, linkTo: readlinkSync(file) };
      return { path: name, mode: entry.mode & 0o777, content: readFileSync(file) };
    });
}

/** As the installation of their packages links them. */
const shellLinks: readonly ImageFile[] = [
  { path: '/bin/sh', mode: 0o777, linkTo: 'bash' },
  { path: '/usr/bin/awk', mode: 0o777, linkTo: 'gawk' },
];

function imageFiles(debian: DebianTree, { packages, only, user, entrypoint }: DebianImage): ImageFile[] {
  const files = packages.flatMap((name) => {
    const found = debian.packages.find((one) => one.name === name);
    if (found === undefined) throw new AppError('host_unsupported', `there is no Debian package ${name}`);
    return packageFiles(found, (file) => only[name]?.test(file) ?? true);
  });
  const ours = new Map(files.flatMap((file) => ('content' in file ? [[file.path, Buffer.from(file.content)]] : [])));
  const linked = withLibraries(ours, 'amd64', (wanted) => {
    const found = findInTree(debian, wanted);
    return found && readFileSync(found.file);
  });
  const text = (at: string, content: string): ImageFile => ({ path: at, mode: 0o644, content: Buffer.from(content) });
  return [
    ...emptyFolders,
    ...files,
    ...[...linked]
      .filter(([at]) => !ours.has(at))
      .map(([at, content]): ImageFile => ({ path: at, mode: 0o755, content })),
    ...(entrypoint === undefined ? shellLinks : []),
    text(
      '/etc/passwd',
      [
        'root:x:0:0:root:/root:/bin/sh',
        ...(user ? [`${user.name}:x:${user.id}:${user.id}::/tmp:/bin/sh`] : []),
        '',
      ].join('\n'),
    ),
    text('/etc/group', ['root:x:0:', ...(user ? [`${user.name}:x:${user.id}:`] : []), ''].join('\n')),
    text('/etc/nsswitch.conf', 'hosts: files dns\n'),
    { path: '/run', mode: 0o1777, directory: true },
    { path: '/data', mode: 0o777, directory: true },
  ];
}

async function buildDebianImage(image: DebianImage, cache: string, log: (line: string) => void): Promise<string> {
  const debian = await ensureDebianTree({ architecture: 'amd64', packages: image.packages, cache, log });
  const usual = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const config: ImageConfig = {
    env: { PATH: image.programs === undefined ? usual : `${image.programs}:${usual}` },
    ...(image.user && { user: `${image.user.id}:${image.user.id}` }),
    ...(image.entrypoint === undefined ? { command: ['/bin/bash'] } : { entrypoint: image.entrypoint }),
  };
  return await imageTarOf(cache, image.reference, config, imageFiles(debian, image));
}

/** Paths of their tars, for `importImage`. */
export const buildDatabaseImages = async (cache: string, log: (line: string) => void): Promise<readonly string[]> => [
  await buildDebianImage(mariadb, cache, log),
  await buildDebianImage(postgresql, cache, log),
];

/** The same of what `liqoctl move volume` runs, whose server is named with `--restic-server-image`. */
export const buildResticImages = async (cache: string, log: (line: string) => void): Promise<readonly string[]> => [
  await buildDebianImage(restic, cache, log),
  await buildDebianImage(resticServer, cache, log),
];
