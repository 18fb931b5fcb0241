import { describe, expect, test } from 'vitest';
import { findings, type OpenApi, versionFault } from './compatibility.ts';
import { readDocument, releasedPath, releasedText, servedPath, shapeOf } from './released.ts';

const served = readDocument(servedPath);

test('the version of the API says what changed since the last release (docs/api.md)', () => {
  expect(versionFault(readDocument(releasedPath), served)).toBeUndefined();
});

test('a document has no findings against itself, also as it is kept', () => {
  expect(findings(served, served)).toEqual([]);
  const kept = JSON.parse(releasedText(served)) as OpenApi;
  expect(findings(kept, served)).toEqual([]);
  expect(kept).toEqual(shapeOf(served));
});

// biome-ignore lint/suspicious/noExplicitAny: documents are changed in every place
type Any = any;
const changed = (change: (document: Any) => void): readonly string[] => {
  const copy = structuredClone(served) as Any;
  change(copy);
  return findings(served, copy).map(({ kind, where, what }) => `${kind}: ${where}: ${what}`);
};
const create = (document: Any) => document.paths['/v1/peerings'].post;
const body = (document: Any) => create(document).requestBody.content['application/json'].schema;
const peering = (document: Any) => document.components.schemas.Peering;

describe('a change that a correct client notices is found:', () => {
  test.each<[what: string, change: (document: Any) => void, found: RegExp]>([
    [
      'an operation that is gone',
      (d) => delete d.paths['/v1/peerings'].post,
      /^breaking: POST \/v1\/peerings: is gone/,
    ],
    ['a path that is gone', (d) => delete d.paths['/v1/peerings'], /^breaking: GET \/v1\/peerings: is gone/],
    ['a field of an answer that is gone', (d) => delete peering(d).properties.phase, /^breaking: .*\.phase: is gone/],
    [
      'a field of an answer that may be missing',
      (d) => peering(d).required.splice(peering(d).required.indexOf('phase'), 1),
      /^breaking: .*\.phase: may be missing now/,
    ],
    [
      'a field of an answer with another type',
      (d) => {
        peering(d).properties.consumer.type = ['string', 'null'];
      },
      /^breaking: .*\.consumer: may be null now/,
    ],
    [
      'a field that bodies had',
      (d) => delete body(d).properties.labels,
      /^breaking: POST \/v1\/peerings body\.labels: is gone/,
    ],
    [
      'a field that bodies must have now',
      (d) => body(d).required.push('class'),
      /^breaking: .*body\.class: is required now/,
    ],
    [
      'a limit that got stricter',
      (d) => {
        body(d).properties.class.maxLength = 1;
      },
      /^breaking: .*body\.class: maxLength is 1/,
    ],
    [
      'a pattern that was not there',
      (d) => {
        body(d).properties.class.pattern = '^x$';
      },
      /^breaking: .*body\.class: another pattern/,
    ],
    [
      'another default',
      (d) => {
        const { schema } = d.paths['/v1/invitations'].post.requestBody.content['application/json'];
        schema.properties.expiresInSeconds.default = 1;
      },
      /^breaking: .*body\.expiresInSeconds: another default/,
    ],
    [
      'a value that is no longer taken',
      (d) => body(d).properties.network.properties.gatewayLocation.enum.pop(),
      /^breaking: .*gatewayLocation: no longer takes/,
    ],
    [
      'a parameter that is gone',
      (d) => d.paths['/v1/peerings'].get.parameters.splice(0, 1),
      /^breaking: GET \/v1\/peerings .*: is gone/,
    ],
    [
      'a parameter that is required now',
      (d) => {
        d.paths['/v1/peerings'].get.parameters[0].required = true;
      },
      /^breaking: GET \/v1\/peerings .*: is required now/,
    ],
    [
      'another status of success',
      (d) => {
        create(d).responses[299] = create(d).responses[202];
      },
      /^breaking: .* 299: is new/,
    ],
    [
      'a role that is needed now',
      (d) => {
        create(d)['x-required-role'] = 'admin';
      },
      /^breaking: .*needs role admin now/,
    ],
    ['credentials that are no longer enough', (d) => create(d).security.pop(), /^breaking: .*no longer lets/],
    [
      'credentials that were not needed',
      (d) => {
        d.paths['/v1/health'].get.security = [{ apiKey: [] }];
      },
      /^breaking: GET \/v1\/health: needs credentials now/,
    ],
    [
      'a header of an answer that is gone',
      (d) => delete create(d).responses[202].headers.ETag,
      /^breaking: POST \/v1\/peerings 202 header ETag: is gone/,
    ],
    [
      'a header of an answer with another type',
      (d) => {
        d.components.headers['RateLimit-Remaining'].schema = { type: 'string' };
      },
      /^breaking: .* header RateLimit-Remaining: may be string now/,
    ],
    [
      'credentials that are shown in another header',
      (d) => {
        d.components.securitySchemes.apiKey = { type: 'apiKey', in: 'header', name: 'x-api-key' };
      },
      /^breaking: credentials apiKey: are shown otherwise/,
    ],
    [
      'credentials that are gone',
      (d) => delete d.components.securitySchemes.identityProvider,
      /^breaking: credentials identityProvider: are gone/,
    ],
    [
      'an event that is gone',
      (d) => delete d.webhooks[Object.keys(d.webhooks)[0] ?? ''],
      /^breaking: event .*: is gone/,
    ],
  ])('%s', (_, change, found) => {
    const all = changed(change);
    expect(all.filter((finding) => found.test(finding))).not.toEqual([]);
    const copy = structuredClone(served) as Any;
    change(copy);
    const [major = 0] = served.info.version.split('.').map(Number);
    expect(versionFault(served, copy)).toContain(`asks for ${major + 1}.0.0`);
    copy.info.version = `${major + 1}.0.0`;
    expect(versionFault(served, copy)).toBeUndefined();
  });
});

describe('a change that clients bear asks for the second number:', () => {
  test.each<[what: string, change: (document: Any) => void]>([
    [
      'a new operation',
      (d) => {
        d.paths['/v1/new'] = { get: create(d) };
      },
    ],
    [
      'a new header of an answer',
      (d) => {
        create(d).responses[202].headers.More = { schema: { type: 'string' } };
      },
    ],
    [
      'other credentials besides',
      (d) => {
        d.components.securitySchemes.more = { type: 'http', scheme: 'digest' };
      },
    ],
    [
      'a new field of an answer',
      (d) => {
        peering(d).properties.more = { type: 'string' };
      },
    ],
    [
      'a new optional field of a body',
      (d) => {
        body(d).properties.more = { type: 'string' };
      },
    ],
    [
      'a new optional parameter',
      (d) => d.paths['/v1/peerings'].get.parameters.push({ in: 'query', name: 'more', schema: {} }),
    ],
    [
      'a looser limit',
      (d) => {
        body(d).properties.consumer.maxLength = 9_999;
      },
    ],
    [
      'a new error code',
      (d) => {
        const [, narrowed] = create(d).responses.default.content['application/problem+json'].schema.allOf;
        narrowed.properties.code.enum.push('more');
      },
    ],
    [
      'a new event',
      (d) => {
        d.webhooks.more = d.webhooks[Object.keys(d.webhooks)[0] ?? ''];
      },
    ],
  ])('%s', (_, change) => {
    const all = changed(change);
    expect(all).not.toEqual([]);
    expect(all.filter((finding) => finding.startsWith('breaking'))).toEqual([]);
    const copy = structuredClone(served) as Any;
    change(copy);
    const [major = 0, minor = 0] = served.info.version.split('.').map(Number);
    expect(versionFault(served, copy)).toContain(`asks for ${major}.${minor + 1}.0`);
    copy.info.version = `${major}.${minor + 1}.0`;
    expect(versionFault(served, copy)).toBeUndefined();
  });
});

test('words, examples, servers and links may change at any time', () => {
  expect(
    changed((d) => {
      create(d).description = 'other words';
      peering(d).properties.phase.description = 'other words';
      d.servers = [];
    }),
  ).toEqual([]);
});
