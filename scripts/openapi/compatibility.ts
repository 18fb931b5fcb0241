/**
 * What a client of an older OpenAPI document meets in a newer one, by the policy of docs/api.md: `breaking` asks for another first number of the
 * version, `addition` for another second one. What this program cannot judge counts as breaking.
 */

export interface Finding {
  readonly kind: 'breaking' | 'addition';
  /** `POST /v1/peerings body.resources`. */
  readonly where: string;
  readonly what: string;
}

type Json = Readonly<Record<string, unknown>>;
/** What clients send may only be accepted more widely, what they are answered only said more narrowly. */
type Direction = 'request' | 'answer';

export interface OpenApi {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Json>>;
  readonly webhooks?: Readonly<Record<string, Json>>;
  readonly components?: Json;
  readonly security?: readonly Json[];
}

const roles = ['viewer', 'operator', 'admin', 'deployment-operator'];
const methods = ['get', 'post', 'put', 'patch', 'delete'];

export function findings(before: OpenApi, after: OpenApi): readonly Finding[] {
  const found: Finding[] = [];
  const say = (kind: Finding['kind'], where: string, what: string) => found.push({ kind, where, what });
  /** Pairs that are compared already: schemas may contain themselves. */
  const seen = new Set<string>();

  function schemas(a: Json, b: Json, direction: Direction, where: string): void {
    if (same(a, b) && !hasRef(a)) return;
    const pair = JSON.stringify([a.$ref, b.$ref, direction]);
    if (a.$ref !== undefined && b.$ref !== undefined) {
      if (seen.has(pair)) return;
      seen.add(pair);
    }
    const [old, now] = [resolved(before, a), resolved(after, b)];
    alternatives(old, now, direction, where);
    const [types, nowTypes] = [typesOf(old), typesOf(now)];
    const [lost, won] = [minus(types, nowTypes), minus(nowTypes, types)];
    if (direction === 'request' && lost.length > 0) say('breaking', where, `no longer takes ${lost.join(', ')}`);
    if (direction === 'answer' && won.length > 0) say('breaking', where, `may be ${won.join(', ')} now`);
    if (direction === 'request' && won.length > 0 && lost.length === 0)
      say('addition', where, `takes ${won.join(', ')} too`);
    values(old, now, direction, where);
    limits(old, now, direction, where);
    properties(old, now, direction, where);
    if (isObject(old.items) && isObject(now.items)) schemas(old.items, now.items, direction, `${where}[]`);
    else if (!same(old.items, now.items)) say('breaking', where, 'its items changed');
    if (!same(old.prefixItems, now.prefixItems)) say('breaking', where, 'its tuple changed');
  }

  function alternatives(old: Json, now: Json, direction: Direction, where: string): void {
    for (const word of ['allOf', 'anyOf', 'oneOf'] as const) {
      const [a, b] = [listOf(old[word]), listOf(now[word])];
      if (a.length === b.length) {
        for (const [i, one] of a.entries()) schemas(one, b[i] ?? {}, direction, where);
        continue;
      }
      if (word === 'allOf') {
        say('breaking', where, 'its parts changed');
        continue;
      }
      const fits = (one: Json, other: Json) => !quietly(() => schemas(one, other, direction, where)).some(isBreaking);
      const orphans =
        direction === 'request'
          ? a.filter((one) => !b.some((other) => fits(one, other)))
          : b.filter((one) => !a.some((other) => fits(other, one)));
      if (orphans.length > 0) say('breaking', where, `${word}: ${orphans.length} of its forms changed`);
      else if (direction === 'request') say('addition', where, `${word}: takes another form`);
    }
  }

  /** What `work` would find, without keeping it. */
  function quietly(work: () => void): readonly Finding[] {
    const from = found.length;
    const known = new Set(seen);
    work();
    seen.clear();
    for (const pair of known) seen.add(pair);
    return found.splice(from);
  }

  function values(old: Json, now: Json, direction: Direction, where: string): void {
    const [a, b] = [valuesOf(old), valuesOf(now)];
    if (a === undefined && b === undefined) return;
    if (b === undefined) {
      say(direction === 'request' ? 'addition' : 'breaking', where, 'may have any value now');
      return;
    }
    if (a === undefined) {
      if (direction === 'request') say('breaking', where, `takes only ${b.join(', ')} now`);
      return;
    }
    const [lost, won] = [minus(a, b), minus(b, a)];
    if (direction === 'request' && lost.length > 0) say('breaking', where, `no longer takes ${lost.join(', ')}`);
    if (won.length > 0) say('addition', where, `has the value ${won.join(', ')} too`);
  }

  function limits(old: Json, now: Json, direction: Direction, where: string): void {
    for (const word of ['pattern', 'format', 'multipleOf', 'uniqueItems', 'propertyNames'] as const) {
      if (same(old[word], now[word])) continue;
      const dropped = now[word] === undefined;
      if (direction === 'request' && dropped) say('addition', where, `has no ${word} any more`);
      else if (direction === 'request' || old[word] !== undefined) say('breaking', where, `another ${word}`);
    }
    const wasDefault = direction === 'request' && old.default !== undefined;
    if (wasDefault && !same(old.default, now.default)) say('breaking', where, 'another default');
    for (const [word, sign] of bounds) {
      const [a, b] = [old[word] as number | undefined, now[word] as number | undefined];
      if (a === b || direction === 'answer') continue;
      const stricter = a === undefined || (b !== undefined && (b - a) * sign < 0);
      if (stricter) say('breaking', where, `${word} is ${b}, was ${a ?? 'not limited'}`);
      else say('addition', where, `${word} is ${b ?? 'not limited'}, was ${a}`);
    }
  }

  function properties(old: Json, now: Json, direction: Direction, where: string): void {
    const [a, b] = [objectOf(old.properties), objectOf(now.properties)];
    const [must, mustNow] = [stringsOf(old.required), stringsOf(now.required)];
    for (const [name, schema] of Object.entries(a)) {
      const other = b[name];
      if (!isObject(schema)) continue;
      if (isObject(other)) schemas(schema, other, direction, `${where}.${name}`);
      else say('breaking', `${where}.${name}`, 'is gone');
    }
    for (const name of minus(Object.keys(b), Object.keys(a))) {
      if (!(direction === 'request' && mustNow.includes(name))) say('addition', `${where}.${name}`, 'is new');
    }
    if (direction === 'request')
      for (const name of minus(mustNow, must)) say('breaking', `${where}.${name}`, 'is required now');
    if (direction === 'answer')
      for (const name of minus(must, mustNow)) if (name in b) say('breaking', `${where}.${name}`, 'may be missing now');
    const [rest, restNow] = [old.additionalProperties, now.additionalProperties];
    if (isObject(rest) && isObject(restNow)) schemas(rest, restNow, direction, `${where}.*`);
    else if (!same(rest, restNow)) {
      const wider = rest === false && direction === 'request';
      const told = direction === 'answer' && restNow === false;
      if (!told) say(wider ? 'addition' : 'breaking', where, 'other rules for further fields');
    }
  }

  function parameters(a: Json, b: Json, where: string): void {
    const byName = (of: OpenApi, one: Json) =>
      new Map(
        listOf(one.parameters)
          .map((each) => resolved(of, each))
          .map((each) => [`${each.in} ${each.name}`, each]),
      );
    const [old, now] = [byName(before, a), byName(after, b)];
    for (const [name, parameter] of old) {
      const other = now.get(name);
      if (other === undefined) say('breaking', `${where} ${name}`, 'is gone');
      else {
        if (other.required === true && parameter.required !== true)
          say('breaking', `${where} ${name}`, 'is required now');
        schemas(objectOf(parameter.schema), objectOf(other.schema), 'request', `${where} ${name}`);
      }
    }
    for (const [name, { required }] of now)
      if (!old.has(name)) say(required === true ? 'breaking' : 'addition', `${where} ${name}`, 'is new');
  }

  function contents(a: Json, b: Json, direction: Direction, where: string): void {
    const [old, now] = [objectOf(a.content), objectOf(b.content)];
    for (const [type, content] of Object.entries(old)) {
      const other = now[type];
      if (!isObject(content)) continue;
      if (!isObject(other)) say('breaking', where, `no longer ${type}`);
      else schemas(objectOf(content.schema), objectOf(other.schema), direction, where);
    }
    for (const type of minus(Object.keys(now), Object.keys(old)))
      say(direction === 'request' ? 'addition' : 'breaking', where, `${type} is new`);
  }

  /** Members of both, each with its place; says which are gone. */
  function* stillThere(old: Json, now: Json, where: string): Generator<[at: string, old: Json, now: Json]> {
    for (const [name, one] of Object.entries(old)) {
      const other = now[name];
      if (!isObject(one)) continue;
      if (isObject(other)) yield [`${where} ${name}`, one, other];
      else say('breaking', `${where} ${name}`, 'is gone');
    }
  }

  function responses(a: Json, b: Json, where: string): void {
    const [old, now] = [objectOf(a.responses), objectOf(b.responses)];
    for (const [at, response, other] of stillThere(old, now, where)) {
      contents(response, other, 'answer', at);
      headers(objectOf(response.headers), objectOf(other.headers), `${at} header`);
    }
    for (const status of minus(Object.keys(now), Object.keys(old)))
      say(status.startsWith('2') ? 'breaking' : 'addition', `${where} ${status}`, 'is new');
  }

  function headers(old: Json, now: Json, where: string): void {
    for (const [at, header, other] of stillThere(old, now, where)) {
      const [a, b] = [resolved(before, header), resolved(after, other)];
      if (a.required === true && b.required !== true) say('breaking', at, 'may be missing now');
      schemas(objectOf(a.schema), objectOf(b.schema), 'answer', at);
    }
    for (const name of minus(Object.keys(now), Object.keys(old))) say('addition', `${where} ${name}`, 'is new');
  }

  /** How credentials are shown: where they stand, in which form, and where they come from. */
  function securitySchemes(old: Json, now: Json): void {
    for (const [name, scheme] of Object.entries(old)) {
      if (!(name in now)) say('breaking', `credentials ${name}`, 'are gone');
      else if (!same(ordered(scheme), ordered(now[name])))
        say('breaking', `credentials ${name}`, 'are shown otherwise');
    }
    for (const name of minus(Object.keys(now), Object.keys(old))) say('addition', `credentials ${name}`, 'are new');
  }

  /** None: every caller is let in. */
  function credentials(old: readonly Json[], now: readonly Json[], where: string): void {
    if (same(old, now)) return;
    if (now.length === 0) say('addition', where, 'needs no credentials any more');
    else if (old.length === 0) say('breaking', where, 'needs credentials now');
    else {
      const allowed = new Set(now.map((one) => JSON.stringify(one)));
      for (const way of old)
        if (!allowed.has(JSON.stringify(way))) say('breaking', where, `no longer lets ${Object.keys(way).join()} in`);
    }
  }

  function operations(a: Json, b: Json, where: string): void {
    parameters(a, b, where);
    const [body, other] = [a.requestBody, b.requestBody];
    if (isObject(body) && isObject(other)) {
      if (other.required === true && body.required !== true) say('breaking', `${where} body`, 'is required now');
      contents(body, other, 'request', `${where} body`);
    } else if (isObject(body)) say('breaking', `${where} body`, 'is gone');
    else if (isObject(other)) say(other.required === true ? 'breaking' : 'addition', `${where} body`, 'is new');
    responses(a, b, where);
    credentials(waysIn(before, a), waysIn(after, b), where);
    const [role, now] = [a['x-required-role'], b['x-required-role']].map((one) => roles.indexOf(String(one)));
    if ((now ?? 0) > (role ?? 0)) say('breaking', where, `needs role ${b['x-required-role']} now`);
    if (a['x-isthmus-permission'] !== b['x-isthmus-permission']) say('breaking', where, 'needs another permission');
  }

  for (const [path, item] of Object.entries(before.paths)) {
    for (const method of methods.filter((one) => one in item)) {
      const where = `${method.toUpperCase()} ${path}`;
      const other = after.paths[path]?.[method];
      if (isObject(other)) operations(objectOf(item[method]), other, where);
      else say('breaking', where, 'is gone');
    }
  }
  for (const [path, item] of Object.entries(after.paths))
    for (const method of methods.filter((one) => one in item && before.paths[path]?.[one] === undefined))
      say('addition', `${method.toUpperCase()} ${path}`, 'is new');
  securitySchemes(schemesOf(before), schemesOf(after));
  const [old, now] = [before.webhooks ?? {}, after.webhooks ?? {}];
  for (const [type, item] of Object.entries(old)) {
    const other = now[type];
    if (other === undefined) say('breaking', `event ${type}`, 'is gone');
    // What the broker sends: an answer, as far as readers are concerned.
    else contents(bodyOf(item), bodyOf(other), 'answer', `event ${type}`);
  }
  for (const type of minus(Object.keys(now), Object.keys(old))) say('addition', `event ${type}`, 'is new');
  return found;
}

/** Why the version of `after` does not say what changed since `before`; undefined: it does. */
export function versionFault(before: OpenApi, after: OpenApi): string | undefined {
  const [old, now] = [versionOf(before), versionOf(after)];
  const all = findings(before, after);
  const breaking = all.filter(isBreaking);
  const needed = breaking.length > 0 ? [old[0] + 1, 0] : all.length > 0 ? [old[0], old[1] + 1] : [old[0], old[1]];
  const [major = 0, minor = 0] = needed;
  if (now[0] > major || (now[0] === major && now[1] >= minor)) return undefined;
  const listed = (breaking.length > 0 ? breaking : all).map(({ where, what }) => `  ${where}: ${what}`);
  return `info.version is ${after.info.version}; since ${before.info.version} this changed, which asks for ${major}.${minor}.0 at least:\n${listed.join('\n')}`;
}

const bounds = [
  ['maxLength', 1],
  ['maximum', 1],
  ['exclusiveMaximum', 1],
  ['maxItems', 1],
  ['maxProperties', 1],
  ['minLength', -1],
  ['minimum', -1],
  ['exclusiveMinimum', -1],
  ['minItems', -1],
  ['minProperties', -1],
] as const;

const isBreaking = ({ kind }: Finding): boolean => kind === 'breaking';
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const objectOf = (value: unknown): Json => (isObject(value) ? value : {});
const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isObject) : []);
const stringsOf = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);
const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
const hasRef = (value: unknown): boolean => JSON.stringify(value)?.includes('"$ref"') === true;
const minus = (a: readonly string[], b: readonly string[]): string[] => a.filter((one) => !b.includes(one));
const waysIn = (of: OpenApi, operation: Json): readonly Json[] => listOf(operation.security ?? of.security);
/** Without words, which the kept document of a release has not. */
const schemesOf = ({ components }: OpenApi): Json =>
  Object.fromEntries(
    Object.entries(objectOf(components?.securitySchemes)).map(([name, scheme]) => {
      const { description, ...form } = objectOf(scheme);
      return [name, form];
    }),
  );
const ordered = (value: unknown): unknown =>
  isObject(value)
    ? Object.fromEntries(
        Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, inner]) => [name, ordered(inner)]),
      )
    : value;
const bodyOf = (item: Json): Json => objectOf(objectOf(item.post).requestBody);

const anyType = ['string', 'number', 'boolean', 'object', 'array', 'null'];
const typesOf = ({ type, allOf, anyOf, oneOf }: Json): readonly string[] => {
  if (Array.isArray(type)) return type.map(String);
  if (typeof type === 'string') return [type];
  // The types of its parts are compared there.
  return (allOf ?? anyOf ?? oneOf) ? [] : anyType;
};

const valuesOf = (schema: Json): readonly string[] | undefined => {
  if ('const' in schema) return [JSON.stringify(schema.const)];
  return Array.isArray(schema.enum) ? schema.enum.map((value) => JSON.stringify(value)) : undefined;
};

function resolved(of: OpenApi, schema: Json): Json {
  if (typeof schema.$ref !== 'string') return schema;
  const found = schema.$ref
    .replace('#/', '')
    .split('/')
    .reduce<unknown>((at, name) => objectOf(at)[name], of);
  if (!isObject(found)) throw new Error(`${schema.$ref} leads nowhere`);
  return resolved(of, found);
}

function versionOf({ info }: OpenApi): readonly [major: number, minor: number] {
  const [major = Number.NaN, minor = Number.NaN] = info.version.split('.').map(Number);
  if (!(major >= 0 && minor >= 0)) throw new Error(`info.version is ${info.version}, expected is MAJOR.MINOR.PATCH`);
  return [major, minor];
}
