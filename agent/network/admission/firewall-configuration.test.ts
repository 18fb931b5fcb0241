import { describe, expect, test } from 'vitest';
import { allow, type Verdict } from '#agent/admission/review.ts';
import type {
  FilterRule,
  FirewallChain,
  FirewallConfiguration,
  FirewallTable,
  NatRule,
} from '#shared/schema/liqo/firewall-configuration.ts';
import { ruleNamePatch, validateFirewall } from './firewall-configuration.ts';

const textOf = (verdict: Verdict): string =>
  verdict.allowed ? (verdict.warnings ?? ['allowed']).join() : `${verdict.message} (${verdict.code})`;

const configuration = (table: Partial<FirewallTable>, name = 'extra', more: Record<string, string> = {}) =>
  ({
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'FirewallConfiguration',
    metadata: { name, namespace: 'liqo', labels: { 'networking.liqo.io/firewall-category': 'gateway', ...more } },
    spec: { table: { name: 'extra', family: 'IPV4', chains: [], ...table } },
  }) satisfies FirewallConfiguration;
const chain = (more: Partial<FirewallChain>): FirewallChain => ({
  name: 'c',
  type: 'filter',
  policy: 'accept',
  hook: 'forward',
  priority: 0,
  rules: {},
  ...more,
});
const nat = (hook: FirewallChain['hook'], ...natRules: Partial<NatRule>[]): FirewallChain =>
  chain({ type: 'nat', hook, rules: { natRules: natRules.map((r) => ({ match: [], natType: 'snat', ...r })) } });
const filter = (hook: FirewallChain['hook'], ...filterRules: Partial<FilterRule>[]): FirewallChain =>
  chain({
    hook,
    rules: { filterRules: filterRules.map((r) => ({ match: [], action: 'accept', counter: true, ...r })) },
  });
const verdictOf = (...chains: FirewallChain[]): string =>
  textOf(validateFirewall(undefined, configuration({ chains }), []));
const tcp = { op: 'eq', proto: { value: 'tcp' } } as const;
const ip = (value: string, position: 'src' | 'dst' = 'dst') => ({ op: 'eq', ip: { value, position } }) as const;
const port = (value: string) => ({ op: 'eq', port: { value, position: 'dst' } }) as const;

describe('a FirewallConfiguration', () => {
  test.each<[string, FirewallChain]>([
    [
      'addresses translated one by one',
      nat('postrouting', { to: '10.70.0.1', match: [ip('10.0.0.1-10.0.0.9', 'src')] }),
    ],
    [
      'ranges translated one to one',
      nat('prerouting', { natType: 'dnat', to: '10.1.0.0/16', match: [ip('10.71.0.0/16')] }),
    ],
    ['masquerade', nat('postrouting', { natType: 'masquerade' })],
    ['a clamp', filter('forward', { action: 'tcpmssclamp', match: [tcp] })],
    ['a mark', filter('prerouting', { action: 'ctmark', value: '0x10', match: [port('80-90')] })],
    ['no tracking', filter('output', { action: 'notrack', match: [port('6091')] })],
    ['a route chain', chain({ type: 'route', hook: 'output', rules: { routeRules: [{ name: 'x' }] } })],
  ])('is accepted with %s', (_, good) => expect(verdictOf(good)).toBe('allowed'));

  test.each<[string, FirewallChain, RegExp]>([
    [
      'rules of another kind',
      chain({ type: 'nat', hook: 'input', rules: { filterRules: [] } }),
      /rules\.filterRules is given: accepted in a chain of type nat is natRules/,
    ],
    [
      'nat in forward',
      nat('forward'),
      /chains\[0\]\.hook is forward: accepted for chains of type nat in family IPV4 is prer/,
    ],
    ['a route chain in input', chain({ type: 'route', hook: 'input' }), /hook is input: accepted .* is output/],
    [
      'dnat in postrouting',
      nat('postrouting', { natType: 'dnat', to: '10.0.0.1' }),
      /natType is dnat: accepted in postrouting is snat, masquerade/,
    ],
    [
      'masquerade in input',
      nat('input', { natType: 'masquerade' }),
      /natType is masquerade: accepted in input is snat/,
    ],
    [
      'snat without an address',
      nat('postrouting', {}),
      /natRules\[0\]\.to is missing: accepted for snat is an address/,
    ],
    [
      'masquerade with an address',
      nat('postrouting', { natType: 'masquerade', to: '10.0.0.1' }),
      /to is 10\.0\.0\.1: accepted is nothing/,
    ],
    [
      'ranges of two lengths',
      nat('postrouting', { to: '10.1.0.0/24', match: [ip('10.0.0.0/16', 'src')] }),
      /to is 10\.1\.0\.0\/24: accepted is a range as long as .*10\.0\.0\.0\/16/,
    ],
    ['a range for anything', nat('postrouting', { to: '10.1.0.0/24' }), /accepted for a range is a match/],
    ['a range with host bits', nat('postrouting', { to: '10.1.0.1/24' }), /without host bits/],
    ['an address that is rules', nat('postrouting', { to: '10.0.0.1; drop' }), /to is "10\.0\.0\.1; drop"/],
    [
      'a clamp of all protocols',
      filter('forward', { action: 'tcpmssclamp' }),
      /match is without the protocol: accepted/,
    ],
    [
      'a clamp of 100 bytes',
      filter('forward', { action: 'tcpmssclamp', value: '100', match: [tcp] }),
      /value is "100"/,
    ],
    ['a mark of nothing', filter('forward', { action: 'ctmark' }), /value is missing: accepted for ctmark is a number/],
    ['no tracking in forward', filter('forward', { action: 'notrack' }), /action is notrack: accepted in forward/],
    [
      'a malformed range',
      filter('forward', { match: [ip('10.0.0.0/33')] }),
      /match\[0\]\.ip\.value is "10\.0\.0\.0\/33"/,
    ],
    ['a backward span', filter('forward', { match: [ip('10.0.0.9-10.0.0.1')] }), /ip\.value is "10\.0\.0\.9-/],
    ['port 0', filter('forward', { match: [port('0')] }), /port\.value is "0": accepted is a port of 1 to 65535/],
    [
      'an interface that is rules',
      filter('forward', { match: [{ op: 'eq', dev: { value: 'x"; drop', position: 'in' } }] }),
      /dev\.value is/,
    ],
    [
      'one rule name twice',
      filter('forward', { name: 'a' }, { name: 'a' }),
      /filterRules\[1\]\.name is a: accepted is each name once/,
    ],
    ['a rule name with a quotation mark', filter('forward', { name: 'a"b' }), /filterRules\[0\]\.name is/],
    ['a chain name that is rules', chain({ name: 'c { }' }), /chains\[0\]\.name is "c \{ \}"/],
  ])('is refused with %s', (_, bad, message) => {
    const text = verdictOf(bad);
    expect(text).toMatch(message);
    expect(text).toMatch(/^spec\.table\..*\(invalid_input\)$/);
  });

  test('is refused with one chain name twice, and in a family that has no such chains', () => {
    expect(verdictOf(chain({}), chain({}))).toMatch(/chains\[1\]\.name is c: accepted is each name once/);
    const arp = configuration({ family: 'ARP', chains: [nat('prerouting')] });
    expect(textOf(validateFirewall(undefined, arp, []))).toMatch(/type is nat: accepted in family ARP is filter/);
    const inet = configuration({ family: 'INET', chains: [filter('forward', {})] });
    expect(validateFirewall(undefined, inet, [])).toBe(allow);
  });

  test('keeps the name of its table, which is unique for its target', () => {
    const mine = configuration({});
    expect(textOf(validateFirewall(mine, configuration({ name: 'b' }), []))).toMatch(/immutable \(extra, not b\)/);
    expect(textOf(validateFirewall(undefined, configuration({}, 'second'), [mine]))).toMatch(/already_exists/);
    const unique = { 'networking.liqo.io/firewall-unique': 'milan' };
    expect(validateFirewall(undefined, configuration({}, 'second', unique), [mine])).toBe(allow);
    expect(validateFirewall(undefined, mine, [mine])).toBe(allow);
  });
});

describe('unnamed rules', () => {
  test('of every chain and kind get a name, and named ones keep theirs', () => {
    const object = configuration({
      chains: [filter('forward', {}, { name: 'mine' }), nat('postrouting', { to: '10.0.0.1' })],
    });
    let n = 0;
    const patch = ruleNamePatch(object, () => `name-${n++}`);
    expect(patch).toEqual([
      { op: 'add', path: '/spec/table/chains/0/rules/filterRules/0/name', value: 'name-0' },
      { op: 'add', path: '/spec/table/chains/1/rules/natRules/0/name', value: 'name-1' },
    ]);
  });

  test.each([undefined, 1, {}, { spec: { table: { chains: [null, { rules: { natRules: [null, 3] } }] } } }])(
    'are not looked for in what is no FirewallConfiguration: %j',
    (object) => expect(ruleNamePatch(object, () => 'x')).toEqual([]),
  );
});
