/** The OpenAPI 3.1 document of the REST API and the agent protocol, from the routes and their schemas. For build time: `api/openapi.json` is what is served. */
import * as z from 'zod';
import { createDocument, type ZodOpenApiOperationObject, type ZodOpenApiPathsObject } from 'zod-openapi';
import { requiredRole } from '#control/access/caller.ts';
import { catalogue } from '#control/events/catalogue.ts';
import { cloudEventOf, type DeliveredType, typeName } from '#control/events/cloud-event.ts';
import { bodyExamples } from '#functions/openapi-examples.ts';
import { refusalsOf } from '#functions/refusals.ts';
import { namedFunctions } from '#functions/routes.ts';
import type { AnyRoute } from '#functions/runtime/route.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import * as across from '#shared/schema/api/cross-tenant.ts';
import * as eventTargets from '#shared/schema/api/event-targets.ts';
import * as network from '#shared/schema/api/network.ts';
import * as resources from '#shared/schema/api/resources.ts';
import * as tenancy from '#shared/schema/api/tenancy.ts';
import * as webhookSchemas from '#shared/schema/api/webhooks.ts';
import * as protocol from '#shared/schema/protocol/agent-protocol.ts';

/** Schemas that become components, by the name they get. Names stand here, not on the schemas: CRDs share some of those and allow no references. */
const components: Record<string, z.ZodType> = {
  Cluster: resources.Cluster,
  JoinToken: resources.JoinTokenAnswer,
  Peering: resources.Peering,
  PeeringSeries: network.PeeringSeries,
  Event: resources.FeedEvent,
  AuditRecord: resources.AuditRecord,
  IssuedApiKey: resources.IssuedApiKey,
  Tenant: tenancy.TenantResource,
  OwnTenant: tenancy.OwnTenantResource,
  Member: tenancy.Member,
  Issuer: tenancy.Issuer,
  Invitation: across.Invitation,
  PeeringRequest: across.PeeringRequest,
  ApprovalRule: across.ApprovalRule,
  DirectoryEntry: across.DirectoryEntry,
  Webhook: webhookSchemas.Webhook,
  WebhookDelivery: webhookSchemas.WebhookDelivery,
  EventTarget: eventTargets.EventTarget,
  EventTargetDelivery: eventTargets.EventTargetDelivery,
  Problem: resources.Problem,
  ObservedBatch: protocol.ObservedBatch,
  DesiredAnswer: protocol.DesiredAnswer,
};

/**
 * Of the API, by semantic versioning: the first number is the one in every path. docs/api.md says which changes count as what. SDKs have this version.
 */
const apiVersion = '1.1.0';

type Params = NonNullable<NonNullable<ZodOpenApiOperationObject['requestParams']>['path']>;

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Repeating the request with the same key within 24 hours gives the same answer and changes nothing, also when the broker died before it could answer. An answer that holds a secret is kept sealed: it opens only for a repeat with the very credentials of the first request, and is `already_exists` for others of the same caller.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]{1,255}$' },
} as const;

/**
 * If-Match is a condition and no input: declared as a parameter, generators of requests would make up versions, and take 412
 * for the refusal of a valid request.
 */
const ifMatch = {
  'x-if-match':
    'The header If-Match is heeded: the ETag of the object as it was read, for example "3". `*` or absent: any version.',
} as const;

const locationHeader = {
  description: 'The path of the resource.',
  required: true,
  schema: { type: 'string' },
} as const;

/** Response headers that more than one operation has, by name. */
const headers = {
  ETag: {
    description: 'The version of the object, in quotes: for If-Match, and for If-None-Match where a GET heeds it.',
    schema: { type: 'string', pattern: '^"[0-9]+"$' },
  },
  'RateLimit-Limit': { description: 'Requests a minute of the tenant, or of its agents.', schema: { type: 'integer' } },
  'RateLimit-Remaining': { description: 'How many are left now.', schema: { type: 'integer' } },
  'RateLimit-Reset': { description: 'Seconds until all are there again.', schema: { type: 'integer' } },
  'Retry-After': { description: 'Seconds after which the request is admitted.', schema: { type: 'integer' } },
} as const;

/** Of deprecated operations alone: no component, since there may be none of those. */
const goingHeaders = {
  Deprecation: { description: 'Since when (RFC 9745): @ and seconds since 1970.', schema: { type: 'string' } },
  Sunset: { description: 'When it will be gone (RFC 8594).', schema: { type: 'string' } },
} as const;

const headerRefs = (...names: readonly (keyof typeof headers)[]): Record<string, never> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` } as never]));
const rateHeaders = headerRefs('RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset');

/** As the edge decides which answers have one: by the version in the body. */
const hasETag = (body: z.ZodType | undefined): boolean => body instanceof z.ZodObject && 'version' in body.shape;

const tenantHeader = {
  name: 'isthmus-tenant',
  in: 'header',
  required: false,
  description: 'The tenant, beside a token of an identity provider. An API key names its own.',
  schema: { type: 'string' },
} as const;

const security: Record<AnyRoute['auth'], Record<string, string[]>[]> = {
  none: [],
  key: [{ apiKey: [] }, { identityProvider: [] }],
  operator: [{ operatorKey: [] }],
  agent: [{ agentSignature: [] }],
  enroll: [{ agentSignature: [] }],
};

/** From the very table that is enforced. */
function roleOf({ auth, permission }: AnyRoute): { 'x-required-role'?: string } {
  if (auth === 'operator') return { 'x-required-role': 'deployment-operator' };
  if (auth !== 'key') return {};
  return { 'x-required-role': permission === undefined ? 'viewer' : requiredRole(permission) };
}

/** A deprecated operation says what to use instead. */
function described({
  description = '',
  deprecated,
}: AnyRoute): Pick<ZodOpenApiOperationObject, 'description' | 'deprecated'> {
  const goes =
    deprecated && `Deprecated since ${deprecated.since}, gone from ${deprecated.until} on: ${deprecated.instead}.`;
  const text = [description, goes].filter((part) => part).join(' ');
  return { ...(text !== '' && { description: text }), ...(deprecated && { deprecated: true }) };
}

/** Counts against a limit of the tenant. */
const isMetered = ({ auth }: AnyRoute): boolean => auth === 'key' || auth === 'agent';

const headersOf = (all: Record<string, unknown>): { headers?: never } =>
  Object.keys(all).length === 0 ? {} : { headers: all as never };

function parametersOf({ method, auth }: AnyRoute): Pick<ZodOpenApiOperationObject, 'parameters'> {
  const parameters = [
    ...(auth === 'key' ? [tenantHeader] : []),
    ...(method === 'POST' && (auth === 'key' || auth === 'operator') ? [idempotencyKey] : []),
  ];
  return parameters.length === 0 ? {} : { parameters };
}

/** The problem document with the codes that this operation answers. */
const problemOf = (refused: readonly ErrorCode[]): never =>
  ({
    'application/problem+json': {
      schema: {
        allOf: [
          { $ref: '#/components/schemas/Problem' },
          { type: 'object', properties: { code: { type: 'string', enum: refused } } },
        ],
      },
    },
  }) as never;

const exampleOf = (operationId: string): { readonly example?: object } => {
  const example = bodyExamples[operationId];
  return example === undefined ? {} : { example };
};

/** Links of what a POST made to the operations of that very thing. */
function linksOf(route: AnyRoute, body: z.ZodType | undefined): { links?: never } {
  const shape = body instanceof z.ZodObject ? body.shape : {};
  const id = ['id', 'name'].find((field) => field in shape);
  if (route.method !== 'POST' || id === undefined) return {};
  const links = Object.entries(namedFunctions).flatMap(([operationId, { route: other }]) => {
    const parameter = other.path.startsWith(`${route.path}/`)
      ? /^\{(\w+)\}$/.exec(other.path.slice(route.path.length + 1))?.[1]
      : undefined;
    return parameter === undefined
      ? []
      : [[operationId, { operationId, parameters: { [parameter]: `$response.body#/${id}` } }]];
  });
  return links.length === 0 ? {} : { links: Object.fromEntries(links) as never };
}

export function operation(operationId: string, route: AnyRoute): ZodOpenApiOperationObject {
  const refused = refusalsOf(route);
  const withStatus = (status: number): readonly ErrorCode[] => refused.filter((code) => codes[code].http === status);
  const answers = Object.entries(route.answers).map(
    ([status, { description, body, type = 'application/json', location }]) => [
      status,
      {
        description,
        ...headersOf({
          ...(location && { Location: locationHeader }),
          ...(hasETag(body) && headerRefs('ETag')),
          ...(isMetered(route) && rateHeaders),
          ...(route.deprecated && goingHeaders),
        }),
        ...(body && { content: { [type]: { schema: body } } }),
        ...(status.startsWith('2') && linksOf(route, body)),
      },
    ],
  );
  return {
    operationId,
    summary: route.summary,
    ...described(route),
    tags: [route.auth === 'agent' || route.auth === 'enroll' ? 'agent protocol' : (route.path.split('/')[2] ?? '')],
    security: security[route.auth],
    ...(route.permission && { 'x-isthmus-permission': route.permission }),
    ...roleOf(route),
    ...((route.pathParameters || route.query) && {
      requestParams: {
        ...(route.pathParameters && { path: route.pathParameters as Params }),
        ...(route.query && { query: route.query as Params }),
      },
    }),
    ...parametersOf(route),
    ...(route.conditional && ifMatch),
    ...(route.body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: route.body, ...exampleOf(operationId) } },
      },
    }),
    responses: {
      ...Object.fromEntries(answers),
      ...(route.conditional && {
        412: {
          description: 'It has another version than If-Match says: read it again.',
          content: problemOf(withStatus(412)),
        },
      }),
      ...(isMetered(route) && {
        429: {
          description: 'Beyond the requests a minute of the tenant, or another limit (RFC 9457).',
          headers: { ...rateHeaders, ...headerRefs('Retry-After') },
          content: problemOf(withStatus(429)),
        },
      }),
      default: {
        description:
          'What went wrong (RFC 9457). `code` is one of these; later versions of the API may add codes, which mean what their status means.',
        content: problemOf(refused),
      },
    },
  };
}

const example = (type: DeliveredType): object =>
  cloudEventOf(
    {
      id: 'ev_06f0example0000000000000001',
      stream: 'acme',
      type,
      subject: catalogue[type].subject,
      at: Date.UTC(2026, 0, 1),
      data: catalogue[type].example,
    },
    { url: 'https://broker.example.com' },
  );

const signatureHeaders = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

/** What webhooks get, by type name. The feed has the same events. */
const webhooks = (): ZodOpenApiPathsObject =>
  Object.fromEntries(
    Object.entries(catalogue).map(([type, { meaning, data }]) => {
      const { $schema: _, ...schema } = z.toJSONSchema(data);
      const narrowed = { type: 'object', properties: { type: { const: typeName(type) }, data: schema } };
      return [
        typeName(type),
        {
          post: {
            summary: meaning,
            tags: ['event types'],
            parameters: signatureHeaders.map((name) => ({ $ref: `#/components/parameters/${name}` })),
            requestBody: {
              required: true,
              content: {
                'application/cloudevents+json': {
                  schema: { allOf: [{ $ref: '#/components/schemas/Event' }, narrowed] } as never,
                  example: example(type as DeliveredType),
                },
              },
            },
            responses: { '2XX': { description: 'Taken. Everything else is tried again.' } },
          },
        },
      ];
    }),
  );

export function openApiDocument(): object {
  const paths: ZodOpenApiPathsObject = {};
  for (const [name, { route }] of Object.entries(namedFunctions)) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(name, route) };
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Isthmus broker',
      version: apiVersion,
      description:
        'Introduces Kubernetes clusters to each other. Errors are problem documents with a stable `code`; lists are paged by `cursor`; objects with a `version` have an ETag. Bodies are JSON in UTF-8, at most 256 KiB and 64 levels deep; unknown fields and unknown query parameters are refused. Requests count against the limits of the tenant: answers carry RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, and 429 comes with Retry-After. `x-required-role` is the least role that may call an operation.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      {
        url: 'https://{broker}',
        description: 'The hosted broker, or one of your own.',
        variables: { broker: { default: 'broker.example.com', description: 'Host, and port if it is not 443.' } },
      },
    ],
    security: [{ apiKey: [] }],
    paths,
    webhooks: webhooks(),
    components: {
      schemas: components,
      headers: headers as never,
      parameters: Object.fromEntries(
        signatureHeaders.map((name) => [name, { name, in: 'header', required: true, schema: { type: 'string' } }]),
      ),
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key of the tenant, isk_….' },
        identityProvider: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description:
            'A token of an identity provider that the tenant registered (POST /v1/issuers), beside the header isthmus-tenant with the name of the tenant.',
        },
        operatorKey: { type: 'http', scheme: 'bearer', description: 'A key of an operator of the broker, iso_….' },
        agentSignature: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description:
            'An EdDSA JWT made for this very request with the cluster key: audience, method, path, hash of the body, single-use jti, at most 60 seconds.',
        },
      },
    },
  });
}
