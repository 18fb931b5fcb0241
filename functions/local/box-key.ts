/** The key that the secrets of webhooks are encrypted with: a file of the data directory, beside the database and not in it. */
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { boxKeyBytes } from '#control/adapters/sealed-box/sealed-box.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { readIfPresent, writePrivateFile } from './private-files.ts';

/** Made when absent. The directory is locked, so no other process makes a second one. */
export async function boxKeyIn(dataDir: string): Promise<Uint8Array> {
  const file = path.join(dataDir, 'webhooks.key');
  const found = await readIfPresent(file);
  if (found === undefined) {
    const key = randomBytes(boxKeyBytes);
    await writePrivateFile(file, `${key.toString('base64')}\n`);
    return key;
  }
  const key = Buffer.from(found.trim(), 'base64');
  if (key.length === boxKeyBytes) return key;
  throw new AppError('host_unsupported', `${file} is no key of ${boxKeyBytes} bytes in base64`, {
    detail: {
      remedy: 'restore it from a backup; without it webhooks need new secrets: remove it and rotate each of them',
    },
  });
}
