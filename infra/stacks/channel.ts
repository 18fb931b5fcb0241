/** The functions behind the WebSocket API. */
import { Stack, type StackProps, Validations } from 'aws-cdk-lib';
import { WebSocketApi, WebSocketRoute } from 'aws-cdk-lib/aws-apigatewayv2';
import { WebSocketLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import type { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { BrokerFunction, type Runs } from '../constructs/broker-function.ts';
import { excuses } from '../rules/excuses.ts';

export interface ChannelProps extends StackProps, Runs {
  readonly webSocketApiId: string;
  readonly functions: readonly CloudFunction[];
}

export class ChannelStack extends Stack {
  constructor(
    scope: Construct,
    id: string,
    { webSocketApiId, functions, settings, reach, environment, codeOf, ...props }: ChannelProps,
  ) {
    super(scope, id, props);
    const webSocketApi = WebSocketApi.fromWebSocketApiAttributes(this, 'WebSocketApi', { webSocketId: webSocketApiId });
    for (const fn of functions) {
      if (fn.trigger.kind !== 'socket') continue;
      const broker = new BrokerFunction(this, fn, { settings, reach, environment, codeOf });
      const route = new WebSocketRoute(broker, 'Route', {
        webSocketApi,
        routeKey: fn.trigger.route,
        integration: new WebSocketLambdaIntegration('Integration', broker.lambda),
        // What the function answers is sent back to the agent: the pong.
        returnResponse: fn.trigger.route === '$default',
      });
      Validations.of(route).acknowledge(excuses.ownAuthentication);
    }
  }
}
