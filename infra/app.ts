/** What `cdk synth` and `cdk deploy` run: bundles the functions as the tests do, and writes the templates of every stage. */
import path from 'node:path';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { cloudFunctions } from '#functions/catalogue.ts';
import { bundleFunctions } from '#scripts/lambda/bundle.ts';
import { brokerApp } from './broker-app.ts';
import { stages } from './stages.ts';

const root = process.env.ISTHMUS_ROOT ?? process.cwd();
const bundles = await bundleFunctions({ root, outDir: path.join(root, '.build', 'cdk-functions') });
const folders = new Map(bundles.map(({ fn, file }) => [fn.name, path.dirname(file)]));

brokerApp({
  stages,
  functions: cloudFunctions,
  codeOf: ({ name }) => Code.fromAsset(folders.get(name) ?? ''),
}).synth();
