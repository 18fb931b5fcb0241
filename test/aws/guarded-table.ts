/**
 * DynamoDB's authorization in front of DynamoDB Local, which has none: each request is one of a function, by its access key, and is refused as AWS
 * does when the policy of that function's role does not allow it. It is STS as well: a function takes sessions of its own role, for one tenant each.
 */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { fakeCredentials } from './dynamodb-local.ts';
import { functionPolicy, functionRoleArn, tableArn } from './function-policy.ts';
import { type AccessRequest, isAllowed } from './iam.ts';

export interface GuardedTable {
  readonly endpoint: string;
  /** What was refused: function, action and partition key. */
  readonly refused: readonly string[];
  /** How many requests of each function were allowed. */
  readonly allowed: ReadonlyMap<string, number>;
  /** For which tenants functions took sessions, in order. */
  readonly sessions: readonly { readonly name: string; readonly tenant: string }[];
  stop(): void;
}

type Attributes = Readonly<Record<string, { readonly S?: string }>>;
interface Body {
  readonly TableName?: string;
  readonly Key?: Attributes;
  readonly Item?: Attributes;
  readonly KeyConditionExpression?: string;
  readonly ExpressionAttributeValues?: Attributes;
  readonly TransactItems?: readonly Readonly<Record<string, Body>>[];
  readonly RequestItems?: Readonly<Record<string, { readonly Keys?: readonly Attributes[] }>>;
}

/** What a request asks for: a transaction is as many requests as it has parts. */
function accessesOf(operation: string, body: Body, tenant: string | undefined): AccessRequest[] {
  if (operation === 'TransactWriteItems') {
    return (body.TransactItems ?? []).flatMap((item) =>
      Object.entries(item).flatMap(([part, inner]) =>
        accessesOf(part === 'ConditionCheck' ? 'ConditionCheckItem' : `${part}Item`, inner, tenant),
      ),
    );
  }
  if (operation === 'BatchGetItem') {
    return Object.entries(body.RequestItems ?? {}).map(([table, { Keys = [] }]) =>
      requestOf(operation, table, [...new Set(Keys.map(({ pk }) => pk?.S ?? ''))], tenant),
    );
  }
  const pk =
    operation === 'Query'
      ? /^pk = (:\w+)/.exec(body.KeyConditionExpression ?? '')?.[1]
      : (body.Key?.pk?.S ?? body.Item?.pk?.S);
  const leading = operation === 'Query' ? body.ExpressionAttributeValues?.[pk ?? '']?.S : pk;
  return [requestOf(operation, body.TableName ?? '', leading === undefined ? [] : [leading], tenant)];
}

const requestOf = (
  operation: string,
  table: string,
  leadingKeys: readonly string[],
  tenant: string | undefined,
): AccessRequest => ({
  action: `dynamodb:${operation}`,
  resource: tableArn(table),
  context: {
    'dynamodb:LeadingKeys': leadingKeys,
    ...(tenant !== undefined && { 'aws:PrincipalTag/tenant': [tenant] }),
  },
});

async function textOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export async function startGuardedTable(
  endpoint: string,
  tableName: string,
  functions: readonly CloudFunction[],
): Promise<GuardedTable> {
  const policies = new Map(functions.map((fn) => [fn.name, functionPolicy(fn, tableName)]));
  const sessions = new Map<string, { readonly name: string; readonly tenant: string }>();
  const refused: string[] = [];
  const allowed = new Map<string, number>();

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await textOf(incoming);
    const key = /Credential=([^/]+)\//.exec(incoming.headers.authorization ?? '')?.[1] ?? '';
    const { name, tenant } = sessions.get(key) ?? { name: key, tenant: undefined };
    if (/\/sts\/aws4_request/.test(incoming.headers.authorization ?? '')) {
      // As the trust policy says: of the function itself, which is in no session yet.
      const form = new URLSearchParams(text.toString('utf8'));
      const [roleArn, forTenant] = [form.get('RoleArn') ?? '', form.get('Tags.member.1.Value') ?? ''];
      const asked = ['sts:AssumeRole', 'sts:TagSession'].map((action) => ({ action, resource: roleArn, context: {} }));
      const fits =
        roleArn === functionRoleArn(name) && tenant === undefined && form.get('Tags.member.1.Key') === 'tenant';
      if (!fits || forTenant === '' || !asked.every((access) => isAllowed(policies.get(name) ?? [], access))) {
        refused.push(`${name} sts:AssumeRole ${roleArn} for ${forTenant}`);
        response.writeHead(403).end('<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>');
        return;
      }
      const session = `session${sessions.size}`;
      sessions.set(session, { name, tenant: forTenant });
      const until = new Date(Date.now() + 3_600_000).toISOString();
      response
        .writeHead(200)
        .end(
          `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>${session}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken><Expiration>${until}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
        );
      return;
    }
    const operation = String(incoming.headers['x-amz-target']).split('.').at(-1) ?? '';
    const policy = policies.get(name) ?? [];
    const denied = accessesOf(operation, JSON.parse(text.toString('utf8')) as Body, tenant).filter(
      (access) => !isAllowed(policy, access),
    );
    if (denied.length > 0) {
      refused.push(
        ...denied.map(({ action, context }) => `${name} ${action} ${context['dynamodb:LeadingKeys']?.join() ?? ''}`),
      );
      const [{ action = '', resource = '' } = {}] = denied;
      response.writeHead(400, { 'content-type': 'application/x-amz-json-1.0' });
      response.end(
        JSON.stringify({
          __type: 'com.amazon.coral.service#AccessDeniedException',
          Message: `User: ${name} is not authorized to perform: ${action} on resource: ${resource} because no identity-based policy allows the ${action} action`,
        }),
      );
      return;
    }
    allowed.set(name, (allowed.get(name) ?? 0) + 1);
    // DynamoDB Local has a database for each access key.
    const authorization = (incoming.headers.authorization ?? '').replace(
      `Credential=${key}/`,
      `Credential=${fakeCredentials.accessKeyId}/`,
    );
    const { host: _, connection: __, ...headers } = incoming.headers;
    const onward = httpRequest(endpoint, { method: 'POST', headers: { ...headers, authorization } }, (answered) => {
      response.writeHead(answered.statusCode ?? 500, answered.headers);
      answered.pipe(response);
    });
    onward.on('error', () => response.destroy());
    onward.end(text);
  }

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    refused,
    allowed,
    get sessions() {
      return [...sessions.values()];
    },
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
