/** Fields of forms that several pages ask for: resources, names of clusters, how long something holds. */
import { clusters } from '../data/live.ts';
import { type Field, filled, type Values } from '../parts/form.tsx';

export const resourceFields: readonly Field[] = [
  { name: 'cpu', label: 'CPU', placeholder: '2', hint: 'What is left open, the provider alone limits.' },
  { name: 'memory', label: 'Memory', placeholder: '2Gi' },
  { name: 'pods', label: 'Pods', placeholder: '20' },
];
export const resourcesOf = (values: Values): Record<string, string> => filled(values, 'cpu', 'memory', 'pods');

/** Of the own clusters that have joined. */
export const clusterField = (name: string, label: string): Field => ({
  name,
  label,
  kind: 'select',
  required: true,
  options: [...clusters.value.values()].filter(({ state }) => state === 'joined').map((each) => [each.name, each.name]),
});

export const days = (name: string, label: string, value: string): Field => ({
  name,
  label,
  kind: 'number',
  value,
  required: true,
});
export const secondsOf = (text: string | undefined): number => Math.round(Number(text) * 86_400);

/** From words separated by commas or spaces; undefined when there is none. */
export const wordsIn = (text: string | undefined): string[] | undefined => {
  const words = (text ?? '').split(/[\s,]+/).filter((word) => word !== '');
  return words.length === 0 ? undefined : words;
};
