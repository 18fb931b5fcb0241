/** The npm package: types by openapi-typescript, requests by openapi-fetch. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { runCommand } from '#scripts/setup/run-command.ts';
import type { Document } from './document.ts';
import { npmTools } from './npm-tools.ts';
import type { Sdk } from './sdk.ts';

const index = `import createClient from 'openapi-fetch';

/** url: of the broker; key: an API key, or a token of an identity provider; tenant: beside such a token. */
export function createBrokerClient({ url, key, tenant, ...rest }) {
  return createClient({
    baseUrl: url,
    headers: { authorization: \`Bearer \${key}\`, ...(tenant !== undefined && { 'isthmus-tenant': tenant }) },
    ...rest,
  });
}
`;

const types = `import type { Client, ClientOptions } from 'openapi-fetch';
import type { components, paths } from './schema.js';

export type { components, operations, paths } from './schema.js';
export interface BrokerClientOptions extends Omit<ClientOptions, 'baseUrl' | 'headers'> {
  readonly url: string;
  /** An API key, or a token of an identity provider. */
  readonly key: string;
  /** The tenant, beside a token of an identity provider. */
  readonly tenant?: string;
}
export type BrokerClient = Client<paths>;
export declare function createBrokerClient(options: BrokerClientOptions): BrokerClient;
export type Problem = components['schemas']['Problem'];
`;

export const typescriptSdk: Sdk = {
  name: 'typescript',
  async write({ info }: Document, { documentFile, out, root, cache, log }) {
    const tools = await npmTools({ root, cache, log });
    await mkdir(out, { recursive: true });
    await runCommand(process.execPath, [tools.openApiTypescript, documentFile, '-o', path.join(out, 'schema.d.ts')]);
    const { dependencies } = JSON.parse(await readFile(tools.packageFile, 'utf8')) as {
      readonly dependencies: Readonly<Record<string, string>>;
    };
    const manifest = {
      name: 'isthmus-client',
      version: info.version,
      description: `Client of the ${info.title}`,
      license: 'Apache-2.0',
      type: 'module',
      exports: { '.': { types: './index.d.ts', default: './index.js' } },
      dependencies: { 'openapi-fetch': dependencies['openapi-fetch'] },
    };
    await writeFile(path.join(out, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    await writeFile(path.join(out, 'index.js'), index);
    await writeFile(path.join(out, 'index.d.ts'), types);
  },
};
