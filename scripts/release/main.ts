/** `npm run release -- [--out FOLDER] [--url URL] [--key FILE] [--push REF [--plain-http]]`: everything of a release from the commit that is checked out. */
import { homedir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { publish } from '#scripts/image/publish.ts';
import { parseReference } from '#scripts/image/reference.ts';
import { dockerConfigFile } from '#scripts/image/registry-credentials.ts';
import { loadSigningKey } from '#scripts/image/signature.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { release } from './release.ts';

const log = (line: string): void => console.error(line);

async function main(root: string): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: path.join(root, 'dist', 'release') },
      url: { type: 'string' },
      key: { type: 'string' },
      push: { type: 'string' },
      'plain-http': { type: 'boolean', default: false },
    },
  });
  const target = values.push === undefined ? undefined : parseReference(values.push);
  const key = values.key === undefined ? undefined : loadSigningKey(values.key, process.env.COSIGN_PASSWORD);
  const url = values.url?.replace(/\/+$/, '');
  if (url !== undefined && !/^https:\/\/[^\s/]+/.test(url))
    throw new AppError('invalid_input', `--url is ${JSON.stringify(values.url)}; accepted: https://HOST/PATH`);
  const signing = key === undefined ? {} : { key };
  const options = { root, cache: cacheDir(), out: path.resolve(values.out), log, ...signing };
  const { files, image } = await release({ ...options, ...(url !== undefined && { url }) });
  for (const name of files) console.log(path.join(values.out, name));
  if (target === undefined) return;
  const configFile = dockerConfigFile(process.env, homedir());
  await publish(image, { target, plainHttp: values['plain-http'], configFile, log, ...signing });
  console.log(`pushed ${values.push}@${image.digest}`);
}

main(process.env.ISTHMUS_ROOT ?? process.cwd()).catch((error: unknown) => {
  console.error(error instanceof AppError ? `error: ${error.message}` : error);
  process.exitCode = 1;
});
