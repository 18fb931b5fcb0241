/** Which RouteConfigurations are accepted (docs/design/networking.md#which-routes-may-users-add). Their values end up in commands for the kernel. Pure. */
import { allow, deny, type Verdict } from '#agent/admission/review.ts';
import { formatCidr, parseCidr } from '#shared/domain/cidr.ts';
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import { networkLabel } from '#shared/domain/network-keys.ts';
import type { RouteConfiguration, RouteRule } from '#shared/schema/liqo/route-configuration.ts';
import { keepsSpec } from './network-kinds.ts';

type Keys = readonly string[];
const routeTarget: Keys = [networkLabel.routeCategory, networkLabel.routeSubcategory, networkLabel.routeUnique];

/** As the kernel takes it, without what a shell or a rule set would read as more than a name. */
export const interfaceName = /^[A-Za-z0-9_.@-]{1,15}$/;
export const acceptedInterface = 'accepted is an interface name of 1 to 15 letters, digits and ._@-';
/** Names of tables and chains. */
export const entityName = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}$/;
export const acceptedName = 'accepted are 1 to 128 letters, digits and ._/-, not a punctuation mark first';

export interface WithTable extends KubeObject {
  readonly spec: { readonly table: { readonly name: string } };
}

/** Two tables of one name for one target would be one table in the kernel. `target`: the labels that select which hosts apply it. */
export function validateTableName(
  before: WithTable | undefined,
  after: WithTable,
  others: readonly WithTable[],
  target: Keys,
): Verdict | undefined {
  const { name } = after.spec.table;
  if (!entityName.test(name)) return bad('spec.table.name', JSON.stringify(name), acceptedName);
  if (before && before.spec.table.name !== name) {
    return deny(
      'invalid_input',
      `spec.table.name is immutable (${before.spec.table.name}, not ${name}): delete the object and create it again`,
    );
  }
  const targetOf = ({ metadata }: KubeObject): string => JSON.stringify(target.map((key) => metadata.labels?.[key]));
  const other = others.find(
    (o) => keyOf(o) !== keyOf(after) && o.spec.table.name === name && targetOf(o) === targetOf(after),
  );
  if (!other) return undefined;
  return deny(
    'already_exists',
    `spec.table.name is ${name}, which is that of ${after.kind} ${keyOf(other)} for the same nodes or gateways: accepted is each name once for each target`,
  );
}

export const bad = (field: string, value: string, accepted: string): Verdict =>
  deny('invalid_input', `${field} is ${value}: ${accepted}`);

/** An object that no node or gateway applies is valid, but rarely intended. */
export const warnIfUnused = ({ metadata }: KubeObject, target: Keys): Verdict =>
  target.some((key) => metadata.labels?.[key] !== undefined)
    ? allow
    : { allowed: true, warnings: [`no node or gateway applies this: it has none of the labels ${target.join(', ')}`] };

/** `others`: all RouteConfigurations of the cluster. */
export function validateRoutes(
  before: RouteConfiguration | undefined,
  after: RouteConfiguration,
  others: readonly RouteConfiguration[],
): Verdict {
  if (keepsSpec(before, after)) return allow;
  const named = validateTableName(before, after, others, routeTarget);
  if (named) return named;
  const seen = new Map<string, number>();
  for (const [i, rule] of after.spec.table.rules.entries()) {
    const at = `spec.table.rules[${i}]`;
    const key = JSON.stringify([rule.src, rule.dst, rule.iif, rule.oif, rule.fwmark]);
    const duplicate = seen.get(key);
    if (duplicate !== undefined) {
      return bad(
        at,
        `the same as spec.table.rules[${duplicate}] in src, dst, iif, oif and fwmark`,
        'accepted is each combination once; put the routes of both under one rule',
      );
    }
    seen.set(key, i);
    const verdict = validateRule(rule, at);
    if (verdict) return verdict;
  }
  return warnIfUnused(after, routeTarget);
}

const highestMark = 2 ** 32 - 1;

function validateRule(rule: RouteRule, at: string): Verdict | undefined {
  for (const field of ['src', 'dst'] as const) {
    const verdict = prefixProblem(rule[field], `${at}.${field}`);
    if (verdict) return verdict;
  }
  for (const field of ['iif', 'oif'] as const) {
    const verdict = interfaceProblem(rule[field], `${at}.${field}`);
    if (verdict) return verdict;
  }
  for (const [field, lowest] of [
    ['fwmark', 0],
    ['priority', 1],
  ] as const) {
    const value = rule[field];
    if (value !== undefined && (value < lowest || value > highestMark))
      return bad(`${at}.${field}`, String(value), `accepted is ${lowest} to ${highestMark}`);
  }
  const destinations = new Map<string, number>();
  for (const [i, route] of rule.routes.entries()) {
    const here = `${at}.routes[${i}]`;
    const verdict = prefixProblem(route.dst, `${here}.dst`) ?? interfaceProblem(route.dev, `${here}.dev`);
    if (verdict) return verdict;
    const duplicate = destinations.get(route.dst);
    if (duplicate !== undefined)
      return bad(`${here}.dst`, route.dst, `accepted is each destination once; ${at}.routes[${duplicate}] has it`);
    destinations.set(route.dst, i);
  }
  return undefined;
}

/** The kernel refuses routes with bits beyond the prefix. */
function prefixProblem(text: string | undefined, field: string): Verdict | undefined {
  if (text === undefined) return undefined;
  const range = parseCidr(text);
  if (range && formatCidr(range) === text) return undefined;
  return bad(field, text, `accepted is ${range ? formatCidr(range) : 'an IPv4 range such as 10.0.0.0/16'}`);
}

const interfaceProblem = (text: string | undefined, field: string): Verdict | undefined =>
  text === undefined || interfaceName.test(text) ? undefined : bad(field, JSON.stringify(text), acceptedInterface);
