/** Which events a webhook asks for: all, one type, or a group of types. */
import { AppError } from '#shared/errors/app-error.ts';
import { publicTypes, testType, typeName, typePrefix } from '../events/cloud-event.ts';

const names: readonly string[] = publicTypes.map(typeName);
const groups: ReadonlySet<string> = new Set(
  publicTypes.map((type) => `${typePrefix}${type.slice(0, type.indexOf('.'))}.*`),
);
const maxTypes = 50;

/** In full: `peering.*` and `peering.requested` are short for what they are in the catalogue. */
function fullName(text: string): string | undefined {
  const type = text.startsWith(typePrefix) || text === '*' ? text : `${typePrefix}${text}`;
  if (type === '*' || groups.has(type) || names.includes(type)) return type;
  return names.find((name) => name.replace(/\.v\d+$/, '') === type);
}

export function checkTypes(types: readonly string[]): readonly string[] {
  if (types.length === 0 || types.length > maxTypes) {
    throw new AppError('invalid_input', `types has ${types.length} entries; accepted are 1 to ${maxTypes}`, {
      detail: { field: 'types', value: types.length },
    });
  }
  const full = types.map((text) => {
    const name = fullName(text);
    if (name !== undefined) return name;
    const accepted = '* for all, a type of the catalogue such as peering.phase-changed, or a group such as peering.*';
    throw new AppError('event_type_unknown', `types has ${JSON.stringify(text)}; accepted are ${accepted}`, {
      detail: { field: 'types', value: text, accepted },
    });
  });
  return [...new Set(full)];
}

export function wants(types: readonly string[], type: string): boolean {
  if (type === testType || types.includes('*')) return true;
  const name = typeName(type);
  return types.some((one) => one === name || (one.endsWith('.*') && name.startsWith(one.slice(0, -1))));
}
