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
  const may = (name: string, operation: string, pk: string): boolean =>
    isAllowed(policyOf(name), { ...tableContext(pk), action: `dynamodb:${operation}`, resource });

  test.each([
    ['api-webhooks-list', 'Query', 't/acme/webhooks', true],
    ['api-webhooks-list', 'Query', 't/acme/audit', false],
    ['api-webhooks-list', 'Query', 't/acme/peerings', false],
    ['api-webhooks-list', 'PutItem', 't/acme/webhooks', false],
    ['api-audit-list', 'Query', 't/acme/audit', true],
    ['api-audit-list', 'DeleteItem', 't/acme/audit', false],
    ['api-peerings-list', 'GetItem', 't/acme/with/bolt', false],
    ['api-peerings-create', 'GetItem', 't/acme/with/bolt', true],
    ['api-peerings-create', 'Query', 't/acme/webhooks', false],
    ['channel-agent-desired', 'GetItem', 't/acme/api-keys', false],
    ['channel-message', 'GetItem', 't/acme/webhooks', false],
    ['events-webhooks', 'GetItem', 't/acme/api-keys', false],
    ['api-tenants-list', 'Query', 'system/tenants', true],
    ['api-keys-list', 'Query', 'system/tenants', false],
    ['schedule-sweep', 'GetItem', 'system/operators', false],
  ])('%s: %s of %s: %s', (name, operation, pk, allowed) => {
    expect(may(name, operation, pk)).toBe(allowed);
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
