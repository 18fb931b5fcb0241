/**
 * A local server of Lambda's Runtime API: hands invocations to one runtime process, as the service does, and collects what it answers. Fresh
 * processes are cold starts; `AWS_LAMBDA_RUNTIME_API` tells the process where to ask.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface InvocationError {
  readonly errorType: string;
  readonly errorMessage: string;
}

export interface LambdaProcess {
  /** The function's answer; rejects with a `FunctionError` when it failed. */
  invoke<T = unknown>(event: unknown): Promise<T>;
  /** Everything it wrote to its log. */
  readonly log: string;
  stop(): Promise<void>;
}

class FunctionError extends Error {
  readonly errorType: string;
  constructor({ errorType, errorMessage }: InvocationError) {
    super(errorMessage);
    this.errorType = errorType;
  }
}

export interface LambdaOptions {
  readonly name: string;
  /** Starts the runtime: program and arguments. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutSeconds: number;
}

interface Invocation {
  readonly id: string;
  readonly event: string;
  readonly resolve: (body: string) => void;
  readonly reject: (error: Error) => void;
}

const version = '/2018-06-01/runtime';

export async function startLambda({ name, command, cwd, env, timeoutSeconds }: LambdaOptions): Promise<LambdaProcess> {
  const waiting: Invocation[] = [];
  const running = new Map<string, Invocation>();
  let asking: ((invocation: Invocation) => void) | undefined;
  let failed: Error | undefined;

  const fail = (error: Error): void => {
    failed ??= error;
    for (const invocation of [...waiting.splice(0), ...running.values()]) invocation.reject(failed);
    running.clear();
  };

  const hand = (response: ServerResponse, invocation: Invocation): void => {
    running.set(invocation.id, invocation);
    response
      .writeHead(200, {
        'content-type': 'application/json',
        'lambda-runtime-aws-request-id': invocation.id,
        'lambda-runtime-deadline-ms': String(Date.now() + timeoutSeconds * 1_000),
        'lambda-runtime-invoked-function-arn': `arn:aws:lambda:local:000000000000:function:${name}`,
        'lambda-runtime-trace-id': `Root=1-${randomUUID()};Sampled=0`,
      })
      .end(invocation.event);
  };

  const server: Server = createServer((request, response) => {
    serve(request, response).catch((error: Error) => {
      response.writeHead(500).end(error.message);
    });
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://local');
    if (request.method === 'GET' && pathname === `${version}/invocation/next`) {
      const next = waiting.shift();
      if (next !== undefined) hand(response, next);
      else {
        asking = (invocation) => hand(response, invocation);
        response.once('close', () => {
          asking = undefined;
        });
      }
      return;
    }
    const body = await read(request);
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"OK"}');
    if (pathname === `${version}/init/error`) return fail(errorOf(body));
    const [, id = '', what] = /\/invocation\/([^/]+)\/(response|error)$/.exec(pathname) ?? [];
    const invocation = running.get(id);
    running.delete(id);
    if (what === 'response') invocation?.resolve(body);
    else invocation?.reject(errorOf(body));
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const [program, ...args] = command;
  const child: ChildProcess = spawn(program, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    // Nothing of this process: a function has what the infrastructure gives it.
    env: {
      PATH: process.env.PATH ?? '',
      AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${port}`,
      AWS_LAMBDA_FUNCTION_NAME: name,
      AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
      AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${name}`,
      AWS_LAMBDA_LOG_STREAM_NAME: 'local',
      LAMBDA_TASK_ROOT: cwd,
      ...env,
    },
  });
  const log: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => log.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => log.push(chunk));
  const printed = (): string => Buffer.concat(log).toString('utf8');
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      fail(error);
      resolve();
    });
    child.once('close', (code, signal) => {
      fail(new Error(`the runtime of ${name} ended with ${code ?? signal}\n${printed()}`));
      resolve();
    });
  });

  return {
    get log() {
      return printed();
    },
    async invoke<T>(event: unknown) {
      if (failed !== undefined) throw failed;
      const body = await new Promise<string>((resolve, reject) => {
        const invocation: Invocation = { id: randomUUID(), event: JSON.stringify(event), resolve, reject };
        const ask = asking;
        asking = undefined;
        if (ask === undefined) waiting.push(invocation);
        else ask(invocation);
      });
      return (body === '' ? undefined : JSON.parse(body)) as T;
    },
    async stop() {
      child.kill('SIGKILL');
      await ended;
      server.closeAllConnections();
      server.close();
    },
  };
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

const errorOf = (body: string): FunctionError => {
  const { errorType = 'Error', errorMessage = body } = JSON.parse(body) as Partial<InvocationError>;
  return new FunctionError({ errorType, errorMessage });
};
