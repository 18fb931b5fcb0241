/** One route of the HTTP API and the function behind it, which only this route may start. */
import { Validations } from 'aws-cdk-lib';
import { type HttpMethod, HttpRoute, HttpRouteKey, type IHttpApi } from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import type { Trigger } from '#functions/cloud-function.ts';
import { excuses } from '../rules/excuses.ts';
import type { BrokerFunction } from './broker-function.ts';

export function httpRoute(
  fn: BrokerFunction,
  httpApi: IHttpApi,
  trigger: Extract<Trigger, { readonly kind: 'http' | 'no-route' }>,
): void {
  const route = new HttpRoute(fn, 'Route', {
    httpApi,
    routeKey:
      trigger.kind === 'http' ? HttpRouteKey.with(trigger.path, trigger.method as HttpMethod) : HttpRouteKey.DEFAULT,
    integration: new HttpLambdaIntegration('Integration', fn.live),
  });
  Validations.of(route).acknowledge(excuses.ownAuthentication);
}
