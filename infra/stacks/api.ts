/** The functions behind the HTTP API: one per route. */
import { Stack, type StackProps, Validations } from 'aws-cdk-lib';
import { HttpApi, type HttpMethod, HttpRoute, HttpRouteKey } from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import type { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { BrokerFunction, type Runs } from '../constructs/broker-function.ts';
import { excuses } from '../rules/excuses.ts';

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
    for (const fn of functions) {
      if (fn.trigger.kind !== 'http') continue;
      const broker = new BrokerFunction(this, fn, { settings, reach, environment, codeOf });
      const route = new HttpRoute(broker, 'Route', {
        httpApi,
        routeKey: HttpRouteKey.with(fn.trigger.path, fn.trigger.method as HttpMethod),
        integration: new HttpLambdaIntegration('Integration', broker.lambda),
      });
      Validations.of(route).acknowledge(excuses.ownAuthentication);
    }
  }
}
