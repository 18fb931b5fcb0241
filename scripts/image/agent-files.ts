/** What goes into the agent's image: Node 24, the bundle, the network tools and the shared libraries that those link to. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { AppError } from '#shared/errors/app-error.ts';
import { bundleAgent } from './bundle.ts';
import type { ImageFile } from './oci.ts';

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
];
const toolFolders = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const certificates = '/etc/ssl/certs/ca-certificates.crt';
export const agentUser = 65_532;

/** Built or fetched for the image's platform. */
export interface AgentPrograms {
  /** Node 24. */
  readonly node: string;
  readonly wireGuardGo: string;
}

export async function agentFiles(
  root: string,
  { node, wireGuardGo }: AgentPrograms,
  version: string,
): Promise<readonly ImageFile[]> {
  const programs = [
    { from: node, to: '/usr/local/bin/node' },
    { from: wireGuardGo, to: '/usr/sbin/wireguard-go' },
    ...tools.map(({ name, from }) => ({ from: find(name, from), to: `/usr/sbin/${name}` })),
  ];
  const bundle = await bundleAgent(root, version);
  const libraries = [...new Set(programs.flatMap(({ from }) => linkedLibraries(from)))].sort();
  return [
    ...programs.map(({ from, to }): ImageFile => ({ path: to, mode: 0o755, content: readFileSync(from) })),
    ...libraries.map((file): ImageFile => ({ path: file, mode: 0o755, content: readFileSync(realpathSync(file)) })),
    ...bundle.map(({ name, content }): ImageFile => ({ path: `/app/${name}`, mode: 0o644, content })),
    {
      path: certificates,
      mode: 0o644,
      content: existsSync(certificates) ? readFileSync(certificates) : Buffer.alloc(0),
    },
    {
      path: '/etc/passwd',
      mode: 0o644,
      content: Buffer.from(`root:x:0:0:root:/:/none\nisthmus:x:${agentUser}:${agentUser}:isthmus:/:/none\n`),
    },
    { path: '/etc/group', mode: 0o644, content: Buffer.from(`root:x:0:\nisthmus:x:${agentUser}:\n`) },
    { path: '/tmp', mode: 0o1777, directory: true },
    { path: '/run', mode: 0o755, directory: true },
  ];
}

function find(name: string, debianPackage: string): string {
  const found = toolFolders.map((folder) => path.join(folder, name)).find((file) => existsSync(file));
  if (!found)
    throw new AppError(
      'host_unsupported',
      `${name} is not installed on this machine: run \`apt-get install ${debianPackage}\``,
    );
  return realpathSync(found);
}

/** Absolute paths as the dynamic loader finds them here, the loader included; none for a static binary. */
function linkedLibraries(file: string): string[] {
  let text: string;
  try {
    text = execFileSync('ldd', [file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch {
    return []; // "not a dynamic executable"
  }
  return [...text.matchAll(/(?:=>\s*)?(\/\S+)\s+\(0x/g)].flatMap((match) => (match[1] === undefined ? [] : [match[1]]));
}
