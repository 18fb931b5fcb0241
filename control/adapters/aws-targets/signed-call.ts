/**
 * One signed HTTPS request to an AWS service, without the service's client: three clients more would put the function over its size budget
 * for one operation each. Signing is AWS's own library.
 */
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { SignatureV4 } from '@smithy/signature-v4';

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface AwsCall {
  readonly service: 'sts' | 'events' | 'sqs';
  readonly region: string;
  /** `aws`, `aws-us-gov` or `aws-cn`. */
  readonly partition: string;
  /** `x-amz-target` of the JSON protocols. Absent: the query protocol. */
  readonly target?: string;
  readonly body: string;
  readonly credentials: Credentials;
}

export interface AwsAnswer {
  readonly status: number;
  readonly text: string;
}

export type Calling = (call: AwsCall, signal: AbortSignal) => Promise<AwsAnswer>;

const contentTypes = {
  sts: 'application/x-www-form-urlencoded; charset=utf-8',
  events: 'application/x-amz-json-1.1',
  sqs: 'application/x-amz-json-1.0',
} as const;

/** Of an answer; errors and receipts are much smaller. */
const maxAnswerBytes = 64 * 1024;

const suffixOf = (partition: string): string => (partition === 'aws-cn' ? 'amazonaws.com.cn' : 'amazonaws.com');

export const endpointOf = ({ service, region, partition }: Pick<AwsCall, 'service' | 'region' | 'partition'>): string =>
  `https://${service}.${region}.${suffixOf(partition)}`;

export interface CallingOptions {
  /** Instead of AWS: all three services at this address. */
  readonly endpoint?: string;
  /** When a request is signed. */
  readonly now: () => number;
}

/** Rejects when there is no answer. No retries: the caller has a schedule of its own. */
export function createCalling({ endpoint, now }: CallingOptions): Calling {
  return async (call, signal) => {
    const url = new URL(endpoint ?? endpointOf(call));
    const { service, region, credentials, body, target } = call;
    const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
    const { headers } = await signer.sign(
      {
        method: 'POST',
        protocol: url.protocol,
        hostname: url.hostname,
        path: '/',
        headers: {
          host: url.host,
          'content-type': contentTypes[service],
          ...(target !== undefined && { 'x-amz-target': target }),
        },
        body,
      },
      { signingDate: new Date(now()) },
    );
    return posted(url, headers, body, signal);
  };
}

function posted(
  url: URL,
  headers: Readonly<Record<string, string>>,
  body: string,
  signal: AbortSignal,
): Promise<AwsAnswer> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    const length = { 'content-length': Buffer.byteLength(body) };
    const sent = send(url, { method: 'POST', agent: false, headers: { ...headers, ...length }, signal });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('error', reject);
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxAnswerBytes) response.destroy(new Error('the answer is too long'));
        else chunks.push(chunk);
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
      );
    });
    sent.end(body);
  });
}

/** What the signer hashes with. */
class Sha256 {
  readonly #secret: string | Uint8Array | undefined;
  #hash: Hash | Hmac;
  constructor(secret?: unknown) {
    this.#secret = secret === undefined ? undefined : bytesOf(secret);
    this.#hash = this.#fresh();
  }
  #fresh(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret);
  }
  update(data: unknown): void {
    this.#hash.update(bytesOf(data));
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    this.#hash = this.#fresh();
  }
}

function bytesOf(data: unknown): string | Uint8Array {
  if (typeof data === 'string') return data;
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return new Uint8Array(data as ArrayBuffer);
}
