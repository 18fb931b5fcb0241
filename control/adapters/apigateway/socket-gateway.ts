/** The management endpoint of an API Gateway WebSocket API. */
import {
  type ApiGatewayManagementApiClient,
  DeleteConnectionCommand,
  PostToConnectionCommand,
} from '@aws-sdk/client-apigatewaymanagementapi';

export interface SocketGateway {
  /** `gone`: its client left without `$disconnect`. */
  post(connectionId: string, frame: unknown, signal?: AbortSignal): Promise<'sent' | 'gone'>;
  /** Closing one that is gone does no harm. */
  close(connectionId: string, signal?: AbortSignal): Promise<void>;
}

const isGone = (error: unknown): boolean =>
  (error as { readonly $metadata?: { readonly httpStatusCode?: number } } | undefined)?.$metadata?.httpStatusCode ===
  410;

const aborting = (abortSignal: AbortSignal | undefined) => (abortSignal === undefined ? {} : { abortSignal });

export const createSocketGateway = (client: ApiGatewayManagementApiClient): SocketGateway => ({
  async post(ConnectionId, frame, signal) {
    const Data = Buffer.from(JSON.stringify(frame));
    try {
      await client.send(new PostToConnectionCommand({ ConnectionId, Data }), aborting(signal));
      return 'sent';
    } catch (error) {
      if (!isGone(error)) throw error;
      return 'gone';
    }
  },
  async close(ConnectionId, signal) {
    try {
      await client.send(new DeleteConnectionCommand({ ConnectionId }), aborting(signal));
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  },
});
