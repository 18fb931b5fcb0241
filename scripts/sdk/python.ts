/** The Python package, by openapi-python-client: httpx and attrs, with and without asyncio. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ensurePythonTool, openApiPythonClient } from '#scripts/setup/python-tool.ts';
import type { Sdk } from './sdk.ts';

export const pythonSdk: Sdk = {
  name: 'python',
  async write({ info }, { documentFile, out, cache, log }) {
    const tool = await ensurePythonTool(openApiPythonClient, cache, log);
    const folder = await mkdtemp(path.join(tmpdir(), 'isthmus-sdk-'));
    try {
      const config = path.join(folder, 'config.json');
      const names = { project_name_override: 'isthmus-client', package_name_override: 'isthmus_client' };
      // Post hooks format by a program that need not be here.
      await writeFile(config, JSON.stringify({ ...names, package_version_override: info.version, post_hooks: [] }));
      const places = ['--path', documentFile, '--output-path', out, '--config', config];
      await tool.run(['generate', ...places, '--overwrite', '--meta', 'setup']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};
