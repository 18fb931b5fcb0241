/** moto's server on loopback: EventBridge with rules that deliver to SQS. Its queues are spoken to in the plain JSON protocol. */
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import {
  CreateSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { startDaemon } from './daemon.ts';
import { fakeCredentials, fakeRegion } from './dynamodb-local.ts';
import { freePort } from './free-port.ts';

export interface Moto {
  readonly endpoint: string;
  eventBridge(): EventBridgeClient;
  /** Makes a queue; one whose name ends in `.fifo` is a FIFO queue. */
  queue(
    name: string,
  ): Promise<{ readonly arn: string /** Takes everything that is there. */; take(): Promise<readonly unknown[]> }>;
  /** Makes a secret of Secrets Manager, or gives it a new value. */
  putSecret(name: string, text: string): Promise<void>;
  /** What it holds. */
  secret(name: string): Promise<string>;
  stop(): Promise<void>;
}

export async function startMoto(): Promise<Moto> {
  const { motoPackages } = await ensureAwsCounterparts({
    root: repositoryRoot,
    cache: cacheDir(),
    log: () => undefined,
  });
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const daemon = await startDaemon({
    command: 'python3',
    args: ['-m', 'moto.server', '-H', '127.0.0.1', '-p', String(port)],
    env: { PYTHONPATH: motoPackages },
    ready: () => fetch(`${endpoint}/moto-api/`, { signal: AbortSignal.timeout(1_000) }),
  });
  async function sqs<T>(action: string, body: unknown): Promise<T> {
    const response = await fetch(endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': `AmazonSQS.${action}`,
        authorization: `AWS4-HMAC-SHA256 Credential=local/20260101/${fakeRegion}/sqs/aws4_request, SignedHeaders=host, Signature=none`,
      },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${action}: ${response.status} ${await response.text()}`);
    const text = await response.text();
    return (text === '' ? {} : JSON.parse(text)) as T;
  }
  const secrets = () => new SecretsManagerClient({ endpoint, region: fakeRegion, credentials: fakeCredentials });
  return {
    endpoint,
    eventBridge: () => new EventBridgeClient({ endpoint, region: fakeRegion, credentials: fakeCredentials }),
    async queue(QueueName) {
      const { QueueUrl } = await sqs<{ readonly QueueUrl: string }>('CreateQueue', {
        QueueName,
        ...(QueueName.endsWith('.fifo') && { Attributes: { FifoQueue: 'true' } }),
      });
      return {
        arn: `arn:aws:sqs:${fakeRegion}:123456789012:${QueueName}`,
        async take() {
          const taken: unknown[] = [];
          for (;;) {
            const { Messages = [] } = await sqs<{
              readonly Messages?: readonly { readonly Body: string; readonly ReceiptHandle: string }[];
            }>('ReceiveMessage', { QueueUrl, MaxNumberOfMessages: 10 });
            if (Messages.length === 0) return taken;
            for (const { Body, ReceiptHandle } of Messages) {
              taken.push(JSON.parse(Body));
              await sqs('DeleteMessage', { QueueUrl, ReceiptHandle });
            }
          }
        },
      };
    },
    async putSecret(Name, SecretString) {
      const client = secrets();
      await client
        .send(new CreateSecretCommand({ Name, SecretString }))
        .catch(() => client.send(new PutSecretValueCommand({ SecretId: Name, SecretString })));
    },
    secret: async (SecretId) => (await secrets().send(new GetSecretValueCommand({ SecretId }))).SecretString ?? '',
    stop: () => daemon.stop(),
  };
}
