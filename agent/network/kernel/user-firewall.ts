/** FirewallConfigurations that people wrote, as nft tables of their own (reference 1.9). What nft cannot take is refused by name, before it reaches nft. */
import { unreachable } from '#shared/domain/unreachable.ts';
import type {
  FilterRule,
  FirewallChain,
  FirewallMatch,
  FirewallTable,
  NatRule,
} from '#shared/schema/liqo/firewall-configuration.ts';
import { type NftFamily, type NftTable, nftTable, ownedChain, type Refusal } from './kernel-state.ts';
import type { UserFirewall } from './user-configurations.ts';

const families: Readonly<Record<FirewallTable['family'], NftFamily>> = {
  INET: 'inet',
  IPV4: 'ip',
  IPV6: 'ip6',
  ARP: 'arp',
  NETDEV: 'netdev',
  BRIDGE: 'bridge',
};
/** What nft reads as one word. Reserved words among them are refused by nft itself. */
const word = /^[A-Za-z_][A-Za-z0-9_./-]{0,63}$/;
const interfaceName = /^[A-Za-z0-9_.:@*-]{1,16}$/;
const address = String.raw`\d{1,3}(\.\d{1,3}){3}`;
const addresses = new RegExp(`^${address}(/\\d{1,2}|-${address})?$`);
const ports = /^\d{1,5}(-\d{1,5})?$/;
const number = /^(0x[0-9a-fA-F]{1,8}|\d{1,10})$/;
const longestComment = 120;

/** Says why in a message that names the field and the value. */
class Unfit extends Error {}

export function userTables(firewalls: readonly UserFirewall[]): { tables: NftTable[]; refused: Refusal[] } {
  const tables: NftTable[] = [];
  const refused: Refusal[] = [];
  const taken = new Map<string, string>();
  for (const firewall of [...firewalls].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    try {
      const table = renderTable(firewall);
      const key = `${table.family} ${table.name}`;
      const other = taken.get(key);
      if (other !== undefined) throw new Unfit(`table.name is ${table.name}, which ${other} has already`);
      taken.set(key, firewall.name);
      tables.push(table);
    } catch (error) {
      if (!(error instanceof Unfit)) throw error;
      refused.push({ configuration: firewall.name, message: error.message });
    }
  }
  return { tables, refused };
}

function renderTable({ name, table }: UserFirewall): NftTable {
  checked('table.name', table.name, word, 'a letter, then letters, digits, "_", "-", "." and "/"');
  if (table.name === nftTable) throw new Unfit(`table.name is ${nftTable}, which belongs to Isthmus`);
  const family = families[table.family];
  return {
    family,
    name: table.name,
    maps: {},
    configuration: name,
    body: [`chain ${ownedChain} {\n}\n`, ...table.chains.map((chain) => renderChain(chain, family))].join(''),
  };
}

function renderChain(chain: FirewallChain, family: NftFamily): string {
  checked('chain.name', chain.name, word, 'a letter, then letters, digits, "_", "-", "." and "/"');
  if (chain.hook === 'ingress')
    throw new Unfit(`chain ${chain.name}: hook is ingress, which needs a device; accepted are the other hooks`);
  const rules = [
    ...(chain.rules.natRules ?? []).map((rule) => natRule(rule, family)),
    ...(chain.rules.filterRules ?? []).map((rule) => filterRule(rule, family)),
  ];
  return [
    `chain ${chain.name} {\n`,
    `  type ${chain.type} hook ${chain.hook} priority ${chain.priority}; policy ${chain.policy};\n`,
    ...rules.map((rule) => `  ${rule}\n`),
    '}\n',
  ].join('');
}

function natRule(rule: NatRule, family: NftFamily): string {
  return join(matches(rule.match), 'counter', natAction(rule, family), comment(rule.name));
}

function natAction(rule: NatRule, family: NftFamily): string {
  if (rule.natType === 'masquerade') {
    if (rule.to !== undefined) throw new Unfit(`rule ${rule.name}: masquerade takes no "to", it is ${rule.to}`);
    return 'masquerade';
  }
  const to = checked(`rule ${rule.name}: to`, rule.to ?? '', addresses, 'an address, or a CIDR for 1:1 translation');
  const ip = family === 'inet' ? ' ip' : '';
  return to.includes('/') ? `${rule.natType} ip prefix to ${to}` : `${rule.natType}${ip} to ${to}`;
}

function filterRule(rule: FilterRule, family: NftFamily): string {
  const counter = rule.counter ? 'counter' : '';
  return join(matches(rule.match), counter, filterAction(rule, family), comment(rule.name));
}

function filterAction(rule: FilterRule, family: NftFamily): string {
  switch (rule.action) {
    case 'accept':
    case 'drop':
    case 'notrack':
      return rule.action;
    case 'reject':
      return family === 'inet' ? 'reject with icmpx port-unreachable' : 'reject';
    case 'metamarkfromctmark':
      return 'meta mark set ct mark';
    case 'ctmark':
      return `ct mark set ${checked(`rule ${rule.name}: value`, rule.value ?? '', number, 'a 32-bit number')}`;
    case 'tcpmssclamp': {
      const value = checked(`rule ${rule.name}: value`, rule.value || '0', number, 'bytes, or 0');
      const size = Number(value) === 0 ? 'rt mtu' : value;
      return `tcp flags & (syn | rst) == syn tcp option maxseg size set ${size}`;
    }
    default:
      return unreachable(rule.action);
  }
}

function matches(all: readonly FirewallMatch[]): string {
  const saysProtocol = all.some((match) => match.proto !== undefined && match.op === 'eq');
  return join(...all.flatMap((match) => conditions(match, saysProtocol)));
}

function conditions({ op, ip, port, proto, dev }: FirewallMatch, saysProtocol: boolean): string[] {
  const not = op === 'neq' ? '!= ' : '';
  const side = { src: 's', dst: 'd' } as const;
  return [
    proto ? `meta l4proto ${not}${proto.value}` : '',
    ip
      ? `ip ${side[ip.position]}addr ${not}${checked('ip.value', ip.value, addresses, 'an address, a CIDR or "a-b"')}`
      : '',
    port && !proto && !saysProtocol ? 'meta l4proto { tcp, udp }' : '',
    port ? `th ${side[port.position]}port ${not}${checked('port.value', port.value, ports, 'a port or "a-b"')}` : '',
    dev
      ? `${dev.position === 'in' ? 'iifname' : 'oifname'} ${not}"${checked('dev.value', dev.value, interfaceName, 'the name of an interface')}"`
      : '',
  ];
}

const comment = (name: string | undefined): string =>
  name === undefined ? '' : `comment "${name.replaceAll(/["\\\n]/g, '_').slice(0, longestComment)}"`;

const join = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join(' ');

function checked(field: string, value: string, accepted: RegExp, words: string): string {
  if (!accepted.test(value)) throw new Unfit(`${field} is ${JSON.stringify(value)}, accepted is ${words}`);
  return value;
}
