/** Which FirewallConfigurations are accepted (docs/design/networking.md#which-firewall-rules-may-users-add). Their values end up in a rule set for the kernel. Pure. */
import type { PatchOperation, Verdict } from '#agent/admission/review.ts';
import { allow } from '#agent/admission/review.ts';
import { formatCidr, parseAddress, parseCidr } from '#shared/domain/cidr.ts';
import { networkLabel } from '#shared/domain/network-keys.ts';
import type {
  FilterRule,
  FirewallChain,
  FirewallConfiguration,
  FirewallMatch,
  FirewallTable,
  NatRule,
} from '#shared/schema/liqo/firewall-configuration.ts';
import { keepsSpec } from './network-kinds.ts';
import {
  acceptedInterface,
  acceptedName,
  bad,
  entityName,
  interfaceName,
  validateTableName,
  warnIfUnused,
} from './route-configuration.ts';

const firewallTarget = [networkLabel.firewallCategory, networkLabel.firewallSubcategory, networkLabel.firewallUnique];

type Hook = FirewallChain['hook'];
type Family = FirewallTable['family'];
const listOf = { filter: 'filterRules', nat: 'natRules', route: 'routeRules' } as const;
const lists = Object.values(listOf);

const inet: readonly Hook[] = ['prerouting', 'input', 'forward', 'output', 'postrouting'];
/** What the kernel has base chains for: family and type to hooks. */
const hooks: Readonly<Record<Family, Readonly<Partial<Record<FirewallChain['type'], readonly Hook[]>>>>> = {
  IPV4: { filter: inet, nat: inet.filter((hook) => hook !== 'forward'), route: ['output'] },
  IPV6: { filter: inet, nat: inet.filter((hook) => hook !== 'forward'), route: ['output'] },
  INET: { filter: [...inet, 'ingress'], nat: inet.filter((hook) => hook !== 'forward'), route: ['output'] },
  ARP: { filter: ['input', 'output'] },
  BRIDGE: { filter: inet },
  NETDEV: { filter: ['ingress'] },
};
const natHooks: Readonly<Record<NatRule['natType'], readonly Hook[]>> = {
  dnat: ['prerouting', 'output'],
  snat: ['postrouting', 'input'],
  masquerade: ['postrouting'],
};

interface Loose {
  readonly [key: string]: unknown;
}
const record = (value: unknown): Loose => (typeof value === 'object' && value !== null ? (value as Loose) : {});
const entries = (value: unknown): readonly (readonly [number, unknown])[] =>
  Array.isArray(value) ? [...value.entries()] : [];

/** Names for unnamed rules: in the kernel a rule is known by its name. The object has not been checked yet. */
export function ruleNamePatch(object: unknown, newName: () => string): PatchOperation[] {
  const { chains } = record(record(record(object).spec).table);
  return entries(chains).flatMap(([c, chain]) =>
    lists.flatMap((list) =>
      entries(record(record(chain).rules)[list])
        .filter(([, rule]) => typeof rule === 'object' && rule !== null && !record(rule).name)
        .map(
          ([r]): PatchOperation => ({
            op: 'add',
            path: `/spec/table/chains/${c}/rules/${list}/${r}/name`,
            value: newName(),
          }),
        ),
    ),
  );
}

/** `others`: all FirewallConfigurations of the cluster. */
export function validateFirewall(
  before: FirewallConfiguration | undefined,
  after: FirewallConfiguration,
  others: readonly FirewallConfiguration[],
): Verdict {
  if (keepsSpec(before, after)) return allow;
  const named = validateTableName(before, after, others, firewallTarget);
  if (named) return named;
  const { table } = after.spec;
  const seen = new Map<string, number>();
  for (const [i, chain] of table.chains.entries()) {
    const at = `spec.table.chains[${i}]`;
    const duplicate = seen.get(chain.name);
    if (duplicate !== undefined)
      return bad(`${at}.name`, chain.name, `accepted is each name once; spec.table.chains[${duplicate}] has it`);
    seen.set(chain.name, i);
    const verdict = validateChain(table.family, chain, at);
    if (verdict) return verdict;
  }
  return warnIfUnused(after, firewallTarget);
}

function validateChain(family: Family, chain: FirewallChain, at: string): Verdict | undefined {
  if (!entityName.test(chain.name)) return bad(`${at}.name`, JSON.stringify(chain.name), acceptedName);
  const types = hooks[family];
  const possible = types[chain.type];
  if (!possible)
    return bad(`${at}.type`, chain.type, `accepted in family ${family} is ${Object.keys(types).join(', ')}`);
  if (!possible.includes(chain.hook))
    return bad(
      `${at}.hook`,
      chain.hook,
      `accepted for chains of type ${chain.type} in family ${family} is ${possible.join(', ')}`,
    );
  const wrong = lists.find((list) => list !== listOf[chain.type] && chain.rules[list] !== undefined);
  if (wrong)
    return bad(`${at}.rules.${wrong}`, 'given', `accepted in a chain of type ${chain.type} is ${listOf[chain.type]}`);
  return (
    ruleNamesProblem(chain, at) ??
    first(chain.rules.natRules, (rule, i) => validateNat(rule, chain, `${at}.rules.natRules[${i}]`)) ??
    first(chain.rules.filterRules, (rule, i) => validateFilter(rule, chain, `${at}.rules.filterRules[${i}]`))
  );
}

function first<T>(
  items: readonly T[] | undefined,
  validate: (item: T, index: number) => Verdict | undefined,
): Verdict | undefined {
  for (const [i, item] of (items ?? []).entries()) {
    const verdict = validate(item, i);
    if (verdict) return verdict;
  }
  return undefined;
}

/** They become comments in the kernel, of at most 128 bytes there. */
const ruleName = /^[^"\\\p{C}]{1,120}$/u;

function ruleNamesProblem(chain: FirewallChain, at: string): Verdict | undefined {
  const list = listOf[chain.type];
  const seen = new Map<string, number>();
  return first(chain.rules[list] as readonly { name?: string }[] | undefined, ({ name }, i) => {
    if (!name) return undefined;
    const field = `${at}.rules.${list}[${i}].name`;
    if (!ruleName.test(name) || Buffer.byteLength(name) > 120)
      return bad(field, JSON.stringify(name), 'accepted are 1 to 120 bytes without quotation marks and backslashes');
    const duplicate = seen.get(name);
    if (duplicate !== undefined)
      return bad(field, name, `accepted is each name once in a chain; ${at}.rules.${list}[${duplicate}] has it`);
    seen.set(name, i);
    return undefined;
  });
}

function validateNat(rule: NatRule, { hook }: FirewallChain, at: string): Verdict | undefined {
  const { natType, to } = rule;
  if (!natHooks[natType].includes(hook))
    return bad(`${at}.natType`, natType, `accepted in ${hook} is ${natTypesIn(hook)}`);
  if (natType === 'masquerade' && to !== undefined)
    return bad(`${at}.to`, to, 'accepted is nothing: masquerade takes the address of the interface');
  if (natType !== 'masquerade') {
    if (to === undefined) return bad(`${at}.to`, 'missing', `accepted for ${natType} is an address or a range`);
    const verdict = translationProblem(rule, to, at);
    if (verdict) return verdict;
  }
  return first(rule.match, (match, i) => validateMatch(match, `${at}.match[${i}]`));
}

const natTypesIn = (hook: Hook): string =>
  Object.entries(natHooks)
    .filter(([, possible]) => possible.includes(hook))
    .map(([type]) => type)
    .join(', ');

/** 1:1 translation keeps host bits, so both ranges are of one length. */
function translationProblem({ natType, match }: NatRule, to: string, at: string): Verdict | undefined {
  if (parseAddress(to) !== undefined) return undefined;
  const range = parseCidr(to);
  if (!range || formatCidr(range) !== to)
    return bad(`${at}.to`, JSON.stringify(to), 'accepted is an IPv4 address, or a range without host bits');
  const position = natType === 'dnat' ? 'dst' : 'src';
  const from = match.find(({ op, ip }) => op === 'eq' && ip?.position === position && parseCidr(ip.value))?.ip?.value;
  if (from === undefined)
    return bad(`${at}.to`, to, `accepted for a range is a match (op eq) of a range of ${position} addresses beside it`);
  if (parseCidr(from)?.length === range.length) return undefined;
  return bad(`${at}.to`, to, `accepted is a range as long as the one that is matched, ${from}`);
}

function validateFilter(rule: FilterRule, { hook }: FirewallChain, at: string): Verdict | undefined {
  const { action, value } = rule;
  if (action === 'ctmark' && !/^(0x[0-9a-fA-F]{1,8}|\d{1,10})$/.test(value ?? ''))
    return bad(
      `${at}.value`,
      value === undefined ? 'missing' : JSON.stringify(value),
      'accepted for ctmark is a number',
    );
  if (action === 'tcpmssclamp') {
    const bytes = Number(value ?? 0);
    if (!Number.isInteger(bytes) || (bytes !== 0 && (bytes < 536 || bytes > 65_495)))
      return bad(`${at}.value`, JSON.stringify(value), 'accepted for tcpmssclamp is 0 (by the route) or 536 to 65495');
    if (!rule.match.some(({ op, proto }) => op === 'eq' && proto?.value === 'tcp'))
      return bad(`${at}.match`, 'without the protocol', 'accepted for tcpmssclamp is a match with op eq and proto tcp');
  }
  if (action === 'notrack' && hook !== 'prerouting' && hook !== 'output')
    return bad(`${at}.action`, action, `accepted in ${hook} is any other; notrack works in prerouting and output`);
  return first(rule.match, (match, i) => validateMatch(match, `${at}.match[${i}]`));
}

const portNumber = (text: string): number | undefined =>
  /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined;

/** `first-last`, in order. */
function isSpan(text: string, parse: (part: string) => number | undefined): boolean {
  const [low = '', high = '', ...more] = text.split('-');
  const [from, to] = [parse(low), parse(high)];
  return more.length === 0 && from !== undefined && to !== undefined && from <= to;
}

function validateMatch({ ip, port, dev }: FirewallMatch, at: string): Verdict | undefined {
  if (ip && parseAddress(ip.value) === undefined && !parseCidr(ip.value) && !isSpan(ip.value, parseAddress))
    return bad(`${at}.ip.value`, JSON.stringify(ip.value), 'accepted is 10.0.0.1, 10.0.0.0/8 or 10.0.0.1-10.0.0.9');
  if (port && portNumber(port.value) === undefined && !isSpan(port.value, portNumber))
    return bad(`${at}.port.value`, JSON.stringify(port.value), 'accepted is a port of 1 to 65535, or 8000-8080');
  if (dev && !interfaceName.test(dev.value))
    return bad(`${at}.dev.value`, JSON.stringify(dev.value), acceptedInterface);
  return undefined;
}
