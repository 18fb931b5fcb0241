/** A part of the REST API for people and portals: one function per route. */
import { Stack, type StackProps } from 'aws-cdk-lib';
import { HttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { BrokerFunction, type Runs } from '../constructs/broker-function.ts';
import { httpRoute } from '../constructs/http-route.ts';

export interface ApiProps extends StackProps, Runs {
  readonly httpApiId: string;
  readonly functions: readonly CloudFunction[];
}

export class ApiStack extends Stack {
  constructor(
    scope: Construct,
    id: string,
    { httpApiId, functions, settings, reach, environment, codeOf, ...props }: ApiProps,
  ) {
    super(scope, id, props);
    const httpApi = HttpApi.fromHttpApiAttributes(this, 'HttpApi', { httpApiId });
    const logGroup = LogGroup.fromLogGroupName(this, 'Log', reach.names.logGroup('api'));
    for (const fn of functions) {
      const broker = new BrokerFunction(this, fn, { settings, reach, environment, codeOf, logGroup });
      if (fn.trigger.kind === 'http' || fn.trigger.kind === 'no-route') httpRoute(broker, httpApi, fn.trigger);
    }
  }
}
