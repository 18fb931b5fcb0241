/** The CDK app: every stage, checked against AWS's own rules. Where the code comes from is up to the caller. */
import { App, type AppProps, Validations } from 'aws-cdk-lib';
import type { Code } from 'aws-cdk-lib/aws-lambda';
import { AwsSolutionsChecks } from 'cdk-nag';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { BrokerStage } from './broker-stage.ts';
import { StageSettings } from './stages.ts';

export interface BrokerAppProps extends AppProps {
  readonly stages: readonly StageSettings[];
  readonly functions: readonly CloudFunction[];
  readonly codeOf: (fn: CloudFunction) => Code;
}

export function brokerApp({ stages, functions, codeOf, ...props }: BrokerAppProps): App {
  const app = new App({ analyticsReporting: false, ...props });
  for (const settings of stages) new BrokerStage(app, { settings: StageSettings.parse(settings), functions, codeOf });
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return app;
}
