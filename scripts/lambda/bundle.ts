/** Bundles each cloud function into one minified ES module with everything inside, the AWS SDK too: what is deployed is what was tested. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { type BuildOptions, build } from 'esbuild';
import { cloudFunctions } from '#functions/catalogue.ts';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { jsonSchemaModules, withoutBodies } from './no-json-schema.ts';
import { transportModules, withoutTransports } from './no-transports.ts';

export interface BundleOptions {
  readonly root: string;
  /** Gets one folder per function, with `index.mjs` and nothing else; emptied first. */
  readonly outDir: string;
  readonly functions?: readonly CloudFunction[];
  readonly version?: string;
}

export interface Bundle {
  readonly fn: CloudFunction;
  /** The module; its handler is `index.handler`. */
  readonly file: string;
  readonly bytes: number;
}

/** The function behind its composition root, with the clients its rights call for. */
function entryOf({ file, access, trigger }: CloudFunction, version: string): string {
  const inner = `import { handler as inner } from './${file}';`;
  if (access.length === 0) {
    return [
      "import { withoutStore } from '#functions/runtime/cloud-bare.ts';",
      inner,
      `export const handler = withoutStore(inner, ${JSON.stringify(version)});`,
    ].join('\n');
  }
  const parts = [
    access.includes('channel:ring') && (['channel', 'gatewayChannel', 'cloud-channel'] as const),
    (trigger.kind === 'socket' || access.includes('listeners:tell')) &&
      (['listeners', 'storedListeners', 'cloud-listeners'] as const),
    access.includes('listeners:tell') && (['bell', 'gatewayBell', 'cloud-bell'] as const),
    access.includes('box:open') && (['secretBox', 'keyringBox', 'cloud-secret-box'] as const),
    access.includes('webhooks:post') && (['webhookSender', 'publicWebhookSender', 'cloud-webhook-sender'] as const),
    access.includes('event-targets:send') &&
      (['eventTargetSender', 'tenantTargets', 'cloud-event-target-sender'] as const),
    access.includes('table:session') && (['sessions', 'ownRoleSessions', 'cloud-sessions'] as const),
    access.includes('bus:publish') && (['publisher', 'bridgePublisher', 'cloud-publisher'] as const),
  ].filter((part) => part !== false);
  return [
    "import { inCloud } from '#functions/runtime/cloud.ts';",
    ...parts.map(([, name, module]) => `import { ${name} } from '#functions/runtime/${module}.ts';`),
    inner,
    `const parts = { ${parts.map(([part, name]) => `${part}: ${name}`).join(', ')} };`,
    `export const handler = inCloud(inner, ${JSON.stringify(version)}, parts);`,
  ].join('\n');
}

const settings = {
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  minify: true,
  legalComments: 'none',
  mainFields: ['module', 'main'],
  alias: {
    '@aws-sdk/credential-provider-node': './scripts/lambda/environment-credentials.ts',
    '@aws-sdk/middleware-endpoint-discovery': './scripts/lambda/no-endpoint-discovery.ts',
    '@pinojs/redact': './scripts/lambda/no-redaction.ts',
    '@smithy/core/event-streams': './scripts/lambda/no-event-streams.ts',
    'sonic-boom': './scripts/lambda/plain-stderr.cts',
    'safe-stable-stringify': './scripts/lambda/plain-stringify.ts',
  },
  logLevel: 'warning',
  // CommonJS packages inside an ES module bundle still ask for `require`; the name is unlike anything a minifier makes.
  banner: {
    js: "import{createRequire as isthmusCreateRequire}from'node:module';const require=isthmusCreateRequire(import.meta.url);",
  },
} as const satisfies BuildOptions;

function versionOf(root: string): string {
  return (JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { readonly version: string }).version;
}

const namespace = 'cloud-function';

/** One pass over all entries, so that what they share is read and parsed once. The same sources give the same bytes. */
export async function bundleFunctions({
  root,
  outDir,
  functions = cloudFunctions,
  version = versionOf(root),
}: BundleOptions): Promise<readonly Bundle[]> {
  rmSync(outDir, { recursive: true, force: true });
  mkdirSync(outDir, { recursive: true });
  const entries = new Map(functions.map((fn) => [fn.name, entryOf(fn, version)]));
  await build({
    ...settings,
    absWorkingDir: root,
    outdir: outDir,
    outExtension: { '.js': '.mjs' },
    entryPoints: functions.map(({ name }) => ({ in: `${namespace}:${name}`, out: `${name}/index` })),
    plugins: [
      {
        name: namespace,
        setup({ onResolve, onLoad }) {
          onResolve({ filter: new RegExp(`^${namespace}:`) }, ({ path: id }) => ({
            path: id.slice(namespace.length + 1),
            namespace,
          }));
          onLoad({ filter: jsonSchemaModules }, ({ path: file }) => ({
            contents: withoutBodies(readFileSync(file, 'utf8')),
            loader: 'js',
          }));
          onLoad({ filter: transportModules }, () => ({ contents: withoutTransports, loader: 'js' }));
          onLoad({ filter: /./, namespace }, ({ path: name }) => ({
            contents: entries.get(name) ?? '',
            loader: 'ts',
            resolveDir: root,
          }));
        },
      },
    ],
  });
  return functions.map((fn) => {
    const file = path.join(outDir, fn.name, 'index.mjs');
    return { fn, file, bytes: readFileSync(file).length };
  });
}
