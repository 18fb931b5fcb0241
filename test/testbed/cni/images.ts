/** Images of CNIs: their own programs, and links to the folders of the node, which are mounted: their rules are set by its iptables. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { ImageConfig, ImageFile } from '#scripts/image/oci.ts';
import { type DebianPackage, ensureDebianPackages } from '#scripts/setup/debian-packages.ts';
import { buildFlanneld, buildFlannelPlugin, buildVpcbox, buildVpcPlugin } from '../build.ts';
import { emptyFolders, imageTarOf } from '../images.ts';
import type { OtherCni } from '../spec.ts';
import { flannelImage, flannelPrograms } from './flannel.ts';
import { vpcImage, vpcPluginConfiguration, vpcPrograms } from './vpc.ts';

/** Flanneld has a backend in C. */
const compiler: readonly DebianPackage[] = [
  { name: 'gcc', proof: 'gcc' },
  { name: 'libc6-dev', proof: '/usr/include/stdio.h' },
];

const ofNode: readonly ImageFile[] = ['bin', 'sbin', 'lib', 'lib64'].map((folder) => ({
  path: `/${folder}`,
  mode: 0o777,
  linkTo: `usr/${folder}`,
}));
const env = { PATH: '/usr/sbin:/usr/bin' };

const programs = (folder: string, files: readonly string[]): Promise<ImageFile[]> =>
  Promise.all(
    files.map(async (file) => ({
      path: `${folder}/${path.basename(file)}`,
      mode: 0o755,
      content: await readFile(file),
    })),
  );

const tarOf = (cache: string, name: string, config: ImageConfig, files: readonly ImageFile[]): Promise<string> =>
  imageTarOf(cache, name, { ...config, env }, [...files, ...ofNode, ...emptyFolders]);

/** The path of its tar. */
export async function buildCniImage(cni: OtherCni, cache: string, log: (line: string) => void): Promise<string> {
  if (cni === 'vpc') {
    const [daemon, plugin] = [await buildVpcbox({ cache, log }), await buildVpcPlugin({ cache, log })];
    const configuration = Buffer.from(`${JSON.stringify(vpcPluginConfiguration, null, 2)}\n`);
    return await tarOf(cache, vpcImage, { entrypoint: [`${vpcPrograms}/vpcbox`] }, [
      ...(await programs(vpcPrograms, [daemon, plugin])),
      { path: `${vpcPrograms}/10-aws.conflist`, mode: 0o644, content: configuration },
    ]);
  }
  await ensureDebianPackages(compiler, cache, log);
  const [daemon, plugin] = [await buildFlanneld({ cache, log }), await buildFlannelPlugin({ cache, log })];
  const files = await programs(flannelPrograms, [daemon, plugin]);
  return await tarOf(cache, flannelImage, { entrypoint: [`${flannelPrograms}/flanneld`] }, files);
}
