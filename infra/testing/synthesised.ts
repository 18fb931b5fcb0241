/** One synthesis for all tests of the templates: the stages as deployed, plus one that uses every option. Code is one small asset. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { cloudFunctions } from '#functions/catalogue.ts';
import { brokerApp } from '../broker-app.ts';
import { type StageSettings, stages } from '../stages.ts';

export interface Resource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DeletionPolicy?: string;
  readonly UpdatePolicy?: Readonly<Record<string, unknown>>;
  readonly UpdateReplacePolicy?: string;
  readonly DependsOn?: readonly string[];
}

export interface StackTemplate {
  readonly name: string;
  readonly terminationProtection: boolean;
  readonly resources: Readonly<Record<string, Resource>>;
  readonly outputs: Readonly<Record<string, { readonly Value: unknown; readonly Export?: { readonly Name: string } }>>;
  readonly parameters: readonly string[];
  readonly text: string;
}

export interface SynthesisedStage {
  readonly settings: StageSettings;
  readonly stacks: Readonly<Record<string, StackTemplate>>;
  readonly warnings: readonly string[];
}

const root = path.resolve(import.meta.dirname, '../..');

/** Uses what the committed stages leave out. */
const everyOption = (like: StageSettings): StageSettings => ({
  ...like,
  name: 'everything',
  account: '123456789012',
  region: 'eu-central-1',
  restoredTable: {
    name: 'isthmus-everything-restored',
    streamArn:
      'arn:aws:dynamodb:eu-central-1:123456789012:table/isthmus-everything-restored/stream/2026-01-01T00:00:00.000',
  },
  corsOrigins: ['https://portal.example.com'],
  consoleIssuers: ['https://id.example.com'],
  domain: {
    api: 'broker.example.com',
    channel: 'bell.example.com',
    certificateArn: 'arn:aws:acm:eu-central-1:123456789012:certificate/11111111-2222-3333-4444-555555555555',
  },
  reservedConcurrency: { 'schedule-sweep': 2 },
  alarmSubscribers: ['operator@example.com', 'https://pager.example.com/isthmus'],
  ownsApiGatewayLogRole: false,
});

let synthesised: Readonly<Record<string, SynthesisedStage>> | undefined;

/** The stages as deployed, and `everything`: once for all files of a process, 4 CPU seconds. */
export function synthesise(): Readonly<Record<string, SynthesisedStage>> {
  synthesised ??= synthesiseStages([...stages, ...stages.slice(-1).map(everyOption)], {});
  return synthesised;
}

/** AWS's rule pack runs, as in `npm run synth`, and a finding without an excuse throws. `said`: what the command line says by `-c`. */
function synthesiseStages(
  settings: readonly StageSettings[],
  said: Readonly<Record<string, unknown>>,
): Readonly<Record<string, SynthesisedStage>> {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'isthmus-synth-'));
  writeFileSync(path.join(scratch, 'index.mjs'), 'export const handler = async () => undefined;\n');
  const { context } = JSON.parse(readFileSync(path.join(root, 'cdk.json'), 'utf8')) as {
    context: Record<string, unknown>;
  };
  const assembly = brokerApp({
    stages: settings,
    functions: cloudFunctions,
    codeOf: () => Code.fromAsset(scratch, { exclude: ['cdk.out'] }),
    context: { ...context, ...said },
    stackTraces: false,
    treeMetadata: false,
    // `npm run synth` runs this one too; it is slow.
    builtinCloudFormationValidation: false,
    outdir: path.join(scratch, 'cdk.out'),
  }).synth();
  const result = Object.fromEntries(
    settings.map((own) => {
      const { stacks } = assembly.getNestedAssembly(`assembly-${own.name}`);
      const templates = stacks.map((stack) => [
        stack.stackName.replace(`isthmus-${own.name}-`, ''),
        {
          name: stack.stackName,
          terminationProtection: stack.terminationProtection ?? false,
          resources: stack.template.Resources,
          outputs: stack.template.Outputs ?? {},
          parameters: Object.keys(stack.template.Parameters ?? {}),
          text: JSON.stringify(stack.template),
        } satisfies StackTemplate,
      ]);
      const warnings = stacks.flatMap(({ messages }) => messages.map(({ entry }) => String(entry.data)));
      return [own.name, { settings: own, stacks: Object.fromEntries(templates), warnings }];
    }),
  );
  rmSync(scratch, { recursive: true });
  return result;
}

export function synthesiseOne(name: string, said: Readonly<Record<string, unknown>> = {}): SynthesisedStage {
  const found = synthesiseStages(
    stages.filter((stage) => stage.name === name),
    said,
  )[name];
  if (found === undefined) throw new Error(`infra/stages.ts has no stage ${name}`);
  return found;
}
