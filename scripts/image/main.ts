/** `npm run image -- [--save FILE] [--platform linux/ARCH] [--compression zstd|gzip]`: the agent's OCI image, without a container engine. */
import { copyFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { AppError } from '#shared/errors/app-error.ts';
import { buildAgentImage } from './agent-image.ts';
import type { CompressionName } from './compression.ts';
import type { Architecture } from './oci.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const log = (line: string): void => console.error(line);

function chosen<T extends string>(option: string, value: string, accepted: readonly T[]): T {
  const found = accepted.find((each) => each === value);
  if (found !== undefined) return found;
  throw new AppError('invalid_input', `--${option} is ${JSON.stringify(value)}; accepted: ${accepted.join(', ')}`, {
    detail: { field: option, value },
  });
}

const { values } = parseArgs({
  options: {
    save: { type: 'string' },
    platform: { type: 'string', multiple: true, default: ['linux/amd64', 'linux/arm64'] },
    compression: { type: 'string', default: 'zstd' },
  },
});
const platforms = values.platform.map((value) => chosen('platform', value, ['linux/amd64', 'linux/arm64']));
const [first, ...others] = [...new Set(platforms)].map((platform) => platform.slice('linux/'.length) as Architecture);
const compression: CompressionName = chosen('compression', values.compression, ['zstd', 'gzip']);
const image = await buildAgentImage(root, { architectures: [first ?? 'amd64', ...others], compression, log });
if (values.save !== undefined) copyFileSync(image.tarPath, values.save);
console.log(`reference   ${image.reference}`);
console.log(`digest      ${image.digest}`);
for (const [architecture, bytes] of Object.entries(image.sizes))
  console.log(`${architecture.padEnd(12)}${(bytes / 1e6).toFixed(1)} MB compressed`);
console.log(`tar         ${values.save ?? image.tarPath}`);
