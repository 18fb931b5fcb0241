/** What agents talk to: their routes of the HTTP API, and the WebSocket that rings. */
import { Stack, Validations } from 'aws-cdk-lib';
import { HttpApi, WebSocketApi, WebSocketRoute } from 'aws-cdk-lib/aws-apigatewayv2';
import { WebSocketLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { BrokerFunction } from '../constructs/broker-function.ts';
import { httpRoute } from '../constructs/http-route.ts';
import { excuses } from '../rules/excuses.ts';
import type { ApiProps } from './api.ts';

export interface ChannelProps extends ApiProps {
  readonly webSocketApiId: string;
}

export class ChannelStack extends Stack {
  constructor(
    scope: Construct,
    id: string,
    { httpApiId, webSocketApiId, functions, settings, reach, environment, codeOf, ...props }: ChannelProps,
  ) {
    super(scope, id, props);
    const httpApi = HttpApi.fromHttpApiAttributes(this, 'HttpApi', { httpApiId });
    const webSocketApi = WebSocketApi.fromWebSocketApiAttributes(this, 'WebSocketApi', { webSocketId: webSocketApiId });
    const logGroup = LogGroup.fromLogGroupName(this, 'Log', reach.names.logGroup('channel'));
    for (const fn of functions) {
      const broker = new BrokerFunction(this, fn, { settings, reach, environment, codeOf, logGroup });
      if (fn.trigger.kind === 'http') httpRoute(broker, httpApi, fn.trigger);
      if (fn.trigger.kind !== 'socket') continue;
      const route = new WebSocketRoute(broker, 'Route', {
        webSocketApi,
        routeKey: fn.trigger.route,
        integration: new WebSocketLambdaIntegration('Integration', broker.live),
        // What the function answers is sent back to the agent: the pong.
        returnResponse: fn.trigger.route === '$default',
      });
      Validations.of(route).acknowledge(excuses.ownAuthentication);
    }
  }
}
