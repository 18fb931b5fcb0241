/** What goes into the agent's image: Node 24, the bundle, rsync, the network tools and the shared libraries that those link to. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type DebianPackageFiles, type DebianTree, findInTree } from '#scripts/setup/debian-tree.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { BundledFile } from './bundle.ts';
import { isElf, linkageOf, withoutSymbols } from './elf.ts';
import type { Architecture, ImageFile } from './oci.ts';

/** Tools by the Debian package that brings them. */
const tools: readonly { readonly name: string; readonly from: string }[] = [
  { name: 'ip', from: 'iproute2' },
  { name: 'nft', from: 'nftables' },
  { name: 'wg', from: 'wireguard-tools' },
  { name: 'nsenter', from: 'util-linux' },
  { name: 'unshare', from: 'util-linux' },
  { name: 'setpriv', from: 'util-linux' },
  { name: 'ping', from: 'iputils-ping' },
  { name: 'conntrack', from: 'conntrack' },
  { name: 'sysctl', from: 'procps' },
  { name: 'sleep', from: 'coreutils' },
  { name: 'rsync', from: 'rsync' },
];
/** What the image takes files from; Node links to the C++ library. */
export const imagePackages: readonly string[] = [
  ...new Set([...tools.map(({ from }) => from), 'libstdc++6', 'ca-certificates']),
].sort();

const toolFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const authorities = '/usr/share/ca-certificates/mozilla';
export const agentUser = 65_532;

/** Built or fetched for the image's architecture. */
export interface AgentPrograms {
  readonly architecture: Architecture;
  /** Node 24. */
  readonly node: string;
  readonly wireGuardGo: string;
  readonly debian: DebianTree;
}

export interface AgentFiles {
  readonly files: readonly ImageFile[];
  /** Those that a file of the image comes from. */
  readonly packages: readonly DebianPackageFiles[];
}

export function agentFiles(programs: AgentPrograms, bundle: readonly BundledFile[]): AgentFiles {
  const { architecture, node, wireGuardGo, debian } = programs;
  const used = new Map<string, DebianPackageFiles>();
  const take = (wanted: string): Buffer | undefined => {
    const found = findInTree(debian, wanted);
    if (found === undefined) return undefined;
    used.set(found.from.name, found.from);
    return readFileSync(found.file);
  };
  const executables = new Map<string, Buffer>([
    ['/usr/local/bin/node', withoutSymbols(readFileSync(node))],
    ['/usr/sbin/wireguard-go', readFileSync(wireGuardGo)],
  ]);
  for (const { name, from } of tools) {
    const content = toolFolders.map((folder) => take(`${folder}/${name}`)).find((bytes) => bytes !== undefined);
    if (content === undefined)
      throw new AppError('host_unsupported', `the Debian package ${from} for ${architecture} has no program ${name}`);
    executables.set(`/usr/sbin/${name}`, content);
  }
  const linked = withLibraries(executables, architecture, take);
  const certificates = certificatesOf(debian, used);
  const files: readonly ImageFile[] = [
    ...[...linked].map(([to, content]): ImageFile => ({ path: to, mode: 0o755, content })),
    ...bundle.map(({ name, content }): ImageFile => ({ path: `/app/${name}`, mode: 0o644, content })),
    { path: '/etc/ssl/certs/ca-certificates.crt', mode: 0o644, content: certificates },
    {
      path: '/etc/passwd',
      mode: 0o644,
      content: Buffer.from(`root:x:0:0:root:/:/none\nisthmus:x:${agentUser}:${agentUser}:isthmus:/:/none\n`),
    },
    { path: '/etc/group', mode: 0o644, content: Buffer.from(`root:x:0:\nisthmus:x:${agentUser}:\n`) },
    { path: '/tmp', mode: 0o1777, directory: true },
    { path: '/run', mode: 0o755, directory: true },
  ];
  return { files, packages: [...used.values()].sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

const triplets = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as const;

/** Adds the dynamic loader and every library that a program or another library links to, where the loader looks for it. */
export function withLibraries(
  programs: ReadonlyMap<string, Buffer>,
  architecture: Architecture,
  take: (wanted: string) => Buffer | undefined,
): ReadonlyMap<string, Buffer> {
  const all = new Map(programs);
  const add = (wanted: string): boolean => {
    if (all.has(wanted)) return true;
    const content = take(wanted);
    if (content !== undefined) all.set(wanted, content);
    return content !== undefined;
  };
  const triplet = triplets[architecture];
  // A map grows while it is walked: libraries of libraries are found on the way.
  for (const [user, content] of all) {
    if (!isElf(content)) continue;
    const { interpreter, needed } = linkageOf(content);
    if (interpreter !== undefined && !add(interpreter)) throw missing(user, interpreter, architecture);
    for (const name of needed) {
      // The loader names itself among its users' libraries.
      if ([...all.keys()].some((known) => path.posix.basename(known) === name)) continue;
      if (!add(`/lib/${triplet}/${name}`) && !add(`/usr/lib/${triplet}/${name}`))
        throw missing(user, name, architecture);
    }
  }
  return all;
}

const missing = (user: string, library: string, architecture: Architecture): AppError =>
  new AppError('host_unsupported', `${user} links to ${library}, which no Debian package for ${architecture} has`);

/** As `update-ca-certificates` writes it, of the package alone: authorities that only this machine trusts stay out. */
function certificatesOf({ packages }: DebianTree, used: Map<string, DebianPackageFiles>): Buffer {
  const from = packages.find(({ name }) => name === 'ca-certificates');
  if (from === undefined) throw new AppError('host_unsupported', 'there is no Debian package ca-certificates');
  used.set(from.name, from);
  const folder = path.join(from.folder, authorities);
  const names = readdirSync(folder)
    .filter((name) => name.endsWith('.crt'))
    .sort();
  return Buffer.concat(names.map((name) => readFileSync(path.join(folder, name))));
}
