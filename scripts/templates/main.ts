/** `npm run templates`: the cloud templates as `npm run synth` writes them, without credentials, and AWS's linter over them. */
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { cfnLint, ensurePythonTool } from '#scripts/setup/python-tool.ts';
import { runCommand } from '#scripts/setup/run-command.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const out = path.join(root, '.build', 'templates');

/** What cfn-lint finds and we keep, with the reason. Everything else fails. */
const excused: readonly { readonly rule: string; readonly because: string }[] = [
  {
    rule: 'W3005',
    because: 'the CDK writes the dependency of a function on its role beside the reference to it; both are right',
  },
  {
    rule: 'I3010',
    because:
      'each route is a function, a role and a log of its own; infra/production.test.ts stops below the limit that it warns of',
  },
];

const linter = await ensurePythonTool(cfnLint, cacheDir(), (line) => console.log(line));
rmSync(out, { recursive: true, force: true });
const started = Date.now();
await runCommand(
  process.execPath,
  [path.join(root, 'node_modules', 'aws-cdk', 'bin', 'cdk'), 'synth', '--quiet', '--no-lookups', '--output', out],
  // A credential of this machine must not be what makes it work.
  {
    cwd: root,
    env: { AWS_EC2_METADATA_DISABLED: 'true', AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null' },
  },
);
const templates = readdirSync(out, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.template.json'))
  .map((file) => path.join(out, file));
console.log(`${templates.length} templates in ${((Date.now() - started) / 1_000).toFixed(1)} s`);
const ignored = excused.flatMap(({ rule }) => ['--ignore-checks', rule]);
try {
  // Informational findings count too: there are none, and the next one should be looked at.
  await linter.run(['--include-checks', 'I', '--format', 'parseable', ...ignored, '--', ...templates]);
  console.log('cfn-lint: nothing found');
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
