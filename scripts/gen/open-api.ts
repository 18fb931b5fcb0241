/** The OpenAPI document: the REST API as the handlers declare it in functions/api/openapi.ts. */
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import * as z from 'zod';

const Source = z.object({ openApiDocument: z.custom<() => object>((value) => typeof value === 'function') });
const sourcePath = 'functions/api/openapi.ts';
/** For readers, and for the broker to serve. */
export const openApiPaths = ['docs/reference/openapi.json', 'functions/api/openapi.json'] as const;

/** Undefined while the source does not exist. It is bundled and loaded when needed: a static import would need the room in this project's references. */
export async function openApiJson(root: string): Promise<string | undefined> {
  const source = path.join(root, sourcePath);
  if (!existsSync(source)) return undefined;
  const bundle = path.join(root, '.build', 'run', `openapi-${process.pid}.mjs`);
  try {
    await build({
      absWorkingDir: root,
      entryPoints: [source],
      outfile: bundle,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      logLevel: 'warning',
    });
    const { openApiDocument } = Source.parse(await import(/* @vite-ignore */ pathToFileURL(bundle).href));
    return `${JSON.stringify(openApiDocument(), null, 2)}\n`;
  } finally {
    rmSync(bundle, { force: true });
  }
}
