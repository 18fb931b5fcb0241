/**
 * `npm run image -- [--save FILE] [--push REF [--plain-http] [--key FILE]] [--sbom FOLDER] [--platform linux/ARCH] [--compression zstd|gzip]`: the
 * agent's OCI image, without a container engine.
 */
import { copyFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { parseArgs } from 'node:util';
import { AppError } from '#shared/errors/app-error.ts';
import { buildAgentImage } from './agent-image.ts';
import type { CompressionName } from './compression.ts';
import { writeDocuments } from './inventory.ts';
import type { Architecture } from './oci.ts';
import { publish } from './publish.ts';
import { parseReference } from './reference.ts';
import { dockerConfigFile } from './registry-credentials.ts';
import { loadSigningKey } from './signature.ts';

const log = (line: string): void => console.error(line);

function chosen<T extends string>(option: string, value: string, accepted: readonly T[]): T {
  const found = accepted.find((each) => each === value);
  if (found !== undefined) return found;
  throw new AppError('invalid_input', `--${option} is ${JSON.stringify(value)}; accepted: ${accepted.join(', ')}`, {
    detail: { field: option, value },
  });
}

async function main(root: string): Promise<void> {
  const { values } = parseArgs({
    options: {
      save: { type: 'string' },
      push: { type: 'string' },
      'plain-http': { type: 'boolean', default: false },
      key: { type: 'string' },
      sbom: { type: 'string' },
      platform: { type: 'string', multiple: true, default: ['linux/amd64', 'linux/arm64'] },
      compression: { type: 'string', default: 'zstd' },
    },
  });
  // Everything that can be wrong with the options is said before anything is built.
  const target = values.push === undefined ? undefined : parseReference(values.push);
  if (target === undefined && (values['plain-http'] || values.key !== undefined))
    throw new AppError('invalid_input', '--plain-http and --key go with --push REF, which is missing');
  const key = values.key === undefined ? undefined : loadSigningKey(values.key, process.env.COSIGN_PASSWORD);
  const platforms = values.platform.map((value) => chosen('platform', value, ['linux/amd64', 'linux/arm64']));
  const [first, ...others] = [...new Set(platforms)].map((platform) => platform.slice('linux/'.length) as Architecture);
  const compression: CompressionName = chosen('compression', values.compression, ['zstd', 'gzip']);
  const image = await buildAgentImage(root, { architectures: [first ?? 'amd64', ...others], compression, log });
  console.log(`reference   ${image.reference}`);
  console.log(`digest      ${image.digest}`);
  for (const [architecture, bytes] of Object.entries(image.sizes))
    console.log(`${architecture.padEnd(12)}${(bytes / 1e6).toFixed(1)} MB compressed`);
  if (values.save !== undefined) copyFileSync(image.tarPath, values.save);
  console.log(`tar         ${values.save ?? image.tarPath}`);
  if (values.sbom !== undefined) {
    writeDocuments(values.sbom, image);
    console.log(`documents   ${values.sbom}`);
  }
  if (target === undefined) return;
  const configFile = dockerConfigFile(process.env, homedir());
  const options = { target, plainHttp: values['plain-http'], configFile, log, ...(key !== undefined && { key }) };
  const { sent, sentBytes } = await publish(image, options);
  console.log(
    `pushed      ${values.push}@${image.digest}, ${sent} blobs of ${(sentBytes / 1e6).toFixed(1)} MB were new`,
  );
  if (key !== undefined) console.log('signed      the image, the SBOM of each architecture and the provenance');
}

main(process.env.ISTHMUS_ROOT ?? process.cwd()).catch((error: unknown) => {
  // Without the cause: it may quote what was sent.
  console.error(error instanceof AppError ? `error: ${error.message}` : error);
  process.exitCode = 1;
});
