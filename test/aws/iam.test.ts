/** The evaluator of policies, by the rules that AWS states for each condition; and what the policies of our functions refuse. */
import { describe, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { functionPolicy, tableContext } from './function-policy.ts';
import { isAllowed, type PolicyStatement } from './iam.ts';

const resource = 'arn:aws:dynamodb:eu-central-1:123456789012:table/isthmus-test';
const statement = (conditions: PolicyStatement['conditions']): PolicyStatement[] => [
  { actions: ['dynamodb:Query'], resources: [resource], conditions },
];
const asked = (keys: readonly string[], over: { action?: string; resource?: string; tag?: string } = {}) => ({
  action: over.action ?? 'dynamodb:Query',
  resource: over.resource ?? resource,
  context: {
    'dynamodb:LeadingKeys': keys,
    ...(over.tag !== undefined && { 'aws:PrincipalTag/tenant': [over.tag] }),
  },
});

describe('a condition', () => {
  const key = 'dynamodb:LeadingKeys';
  test.each<[title: string, conditions: PolicyStatement['conditions'], keys: readonly string[], allowed: boolean]>([
    ['every value has to match', { 'ForAllValues:StringLike': { [key]: 't/*/a' } }, ['t/x/a', 't/x/b'], false],
    ['one of the patterns is enough', { 'ForAllValues:StringLike': { [key]: ['t/*/a', 't/*/b'] } }, ['t/x/b'], true],
    ['no value matches everything', { 'ForAllValues:StringLike': { [key]: 't/*/a' } }, [], true],
    [
      'unless Null says that there has to be one',
      { 'ForAllValues:StringLike': { [key]: 't/*' }, Null: { [key]: 'false' } },
      [],
      false,
    ],
    ['a star stands for slashes too', { 'ForAllValues:StringLike': { [key]: 't/*' } }, ['t/x/a'], true],
    [
      'what is not meant is not',
      { 'ForAllValues:StringLike': { [key]: 't/*' }, 'ForAllValues:StringNotLike': { [key]: 't/*/*' } },
      ['t/x/a'],
      false,
    ],
    [
      'and the rest is',
      { 'ForAllValues:StringLike': { [key]: 't/*' }, 'ForAllValues:StringNotLike': { [key]: 't/*/*' } },
      ['t/x'],
      true,
    ],
    ['a dot is a dot', { 'ForAllValues:StringLike': { [key]: 't.x' } }, ['t/x'], false],
  ])('%s', (_, conditions, keys, allowed) => {
    expect(isAllowed(statement(conditions), asked(keys))).toBe(allowed);
  });

  test('a variable stands for the tag of the session, and for nothing without it', () => {
    const tag = '$' + '{aws:PrincipalTag/tenant}';
    const own = statement({ 'ForAllValues:StringLike': { [key]: `t/${tag}/a` } });
    expect(isAllowed(own, asked(['t/acme/a'], { tag: 'acme' }))).toBe(true);
    expect(isAllowed(own, asked(['t/bolt/a'], { tag: 'acme' }))).toBe(false);
    expect(isAllowed(own, asked(['t//a']))).toBe(false);
  });

  test('that the evaluator does not know is no condition that holds', () => {
    expect(() => isAllowed(statement({ StringEquals: { [key]: 'x' } }), asked(['x']))).toThrow('StringEquals');
  });
});

describe('the policy of a function refuses', () => {
  const policyOf = (name: string) =>
    functionPolicy(cloudFunctions.find((fn) => fn.name === name) ?? expect.fail(name), 'isthmus-test');
  const may = (name: string, operation: string, pk: string, tenant?: string): boolean =>
    isAllowed(policyOf(name), { ...tableContext(pk, tenant), action: `dynamodb:${operation}`, resource });

  test.each([
    ['api-peerings-create', 'GetItem', 't/acme/with/bolt', true],
    ['api-peerings-create', 'Query', 't/acme/webhooks', false],
    ['channel-agent-desired', 'GetItem', 't/acme/api-keys', false],
    ['channel-message', 'GetItem', 't/acme/webhooks', false],
    ['events-webhooks', 'GetItem', 't/acme/api-keys', false],
    ['api-tenants-list', 'Query', 'system/tenants', true],
    ['schedule-sweep', 'GetItem', 'system/operators', false],
  ])('%s: %s of %s: %s', (name, operation, pk, allowed) => {
    expect(may(name, operation, pk)).toBe(allowed);
  });

  test.each([
    ['api-webhooks-list', 'Query', 't/acme/webhooks', true],
    ['api-webhooks-list', 'Query', 't/acme/audit', false],
    ['api-webhooks-list', 'Query', 't/acme/peerings', false],
    ['api-webhooks-list', 'PutItem', 't/acme/webhooks', false],
    ['api-webhooks-list', 'Query', 't/bolt/webhooks', false],
    // A name that begins as that of another tenant does.
    ['api-webhooks-list', 'Query', 't/acme-2/webhooks', false],
    ['api-audit-list', 'Query', 't/acme/audit', true],
    ['api-audit-list', 'Query', 't/bolt/audit', false],
    ['api-audit-list', 'DeleteItem', 't/acme/audit', false],
    ['api-audit-list', 'BatchGetItem', 't/acme/audit', true],
    ['api-audit-list', 'BatchGetItem', 't/bolt/audit', false],
    ['api-audit-list', 'Query', 't/acme/audit-by', true],
    ['api-audit-list', 'Query', 't/acme/labels', false],
    ['api-clusters-list', 'Query', 't/acme/labels', true],
    ['api-clusters-list', 'Query', 't/bolt/labels', false],
    ['api-directory-list', 'Query', 'system/directory/7', true],
    ['api-events-list', 'Query', '§outbox/acme', true],
    ['api-events-list', 'Query', '§outbox/bolt', false],
    ['api-keys-list', 'Query', 't/acme/api-keys', true],
    ['api-keys-list', 'Query', 't/bolt/api-keys', false],
    ['api-keys-list', 'Query', 'system/tenants', false],
    ['api-peerings-list', 'GetItem', 't/acme/with/bolt', false],
    ['api-tenant-export', 'Query', 't/acme/peerings', true],
    ['api-tenant-export', 'Query', 't/bolt/peerings', false],
    ['api-tenant-export', 'GetItem', 't/bolt', false],
  ])('in a session of acme, %s: %s of %s: %s', (name, operation, pk, allowed) => {
    expect(may(name, operation, pk, 'acme')).toBe(allowed);
  });

  test('everything but signing in, while there is no session', () => {
    for (const { name } of cloudFunctions.filter(({ access }) => access.includes('table:session'))) {
      expect([name, may(name, 'GetItem', 't/acme/api-keys')]).toEqual([name, true]);
      for (const kind of ['audit', 'peerings', 'webhooks', 'clusters', 'cluster/rome'])
        expect([name, kind, may(name, 'Query', `t/acme/${kind}`)]).toEqual([name, kind, false]);
      expect([name, may(name, 'PutItem', 't/acme/api-keys')]).toEqual([name, false]);
    }
  });

  test('a scan, of every function', () => {
    for (const fn of cloudFunctions) {
      const request = { action: 'dynamodb:Scan', resource, context: {} };
      expect([fn.name, isAllowed(functionPolicy(fn, 'isthmus-test'), request)]).toEqual([fn.name, false]);
      const another = { ...tableContext('t/acme'), action: 'dynamodb:GetItem', resource: `${resource}-2` };
      expect([fn.name, isAllowed(functionPolicy(fn, 'isthmus-test'), another)]).toEqual([fn.name, false]);
    }
  });
});
