/** How tests look into synthesised stages. */
import { readable } from '../constructs/readable.ts';
import type { Resource, StackTemplate, SynthesisedStage } from './synthesised.ts';

export const everything = ({ stacks }: SynthesisedStage): readonly (readonly [id: string, resource: Resource])[] =>
  Object.values(stacks).flatMap(({ resources }) => Object.entries(resources));

export const ofType = (type: string, stage: SynthesisedStage): Resource[] =>
  everything(stage)
    .filter(([, { Type }]) => Type === type)
    .map(([, resource]) => resource);

export function stack(part: string, { stacks }: SynthesisedStage): StackTemplate {
  const found = stacks[part];
  if (found === undefined) throw new Error(`no stack ${part}, only ${Object.keys(stacks).join(', ')}`);
  return found;
}

function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  const [only, another] = Object.keys(value);
  if (only !== undefined && another === undefined && /^(Ref|Fn::)/.test(only)) return readable(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

/** With every reference as text. */
export const properties = (resource: Resource): Record<string, unknown> =>
  plain(resource.Properties) as Record<string, unknown>;

export function functionOf(name: string, stage: SynthesisedStage): Resource {
  const physical = `isthmus-${stage.settings.name}-${name}`;
  const found = ofType('AWS::Lambda::Function', stage).find(({ Properties }) => Properties.FunctionName === physical);
  if (found === undefined) throw new Error(`no function ${physical}`);
  return found;
}
