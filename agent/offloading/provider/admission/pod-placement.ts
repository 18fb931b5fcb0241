/** Where a guest's pod may run and what it may mount: volumes, nodes, schedulers and classes are lists of what is accepted. Pure. */
import { matchesAny } from '#shared/domain/key-patterns.ts';
import type { GuestRules } from '../guests/decide.ts';
import { settingText } from '../guests/refusal-text.ts';
import type { GuestPlacement } from './guest-pod.ts';

export type Refusal = readonly [field: string, why: string];

const words = (accepted: readonly string[]): string => accepted.join(', ') || 'none';

/** `own`: the provider's own node selector for this consumer, which its pods may repeat. */
export function* placementRefusals(
  pod: GuestPlacement,
  rules: GuestRules,
  own: Readonly<Record<string, string>>,
): Generator<Refusal> {
  if (pod.nodeName)
    yield ['nodeName', `is ${pod.nodeName}: the scheduler of the provider chooses the node; leave it out`];
  yield* classRefusals(pod, rules);
  for (const [i, { name, ...source }] of (pod.volumes ?? []).entries()) {
    const accepted: readonly string[] = rules.volumes;
    const type = Object.keys(source).find((key) => source[key] != null && !accepted.includes(key));
    if (type !== undefined)
      yield [
        `volumes[${i}].${type}`,
        `volume ${name} is of a type that guests do not get; accepted are ${words(accepted)} ${settingText('volumes')}`,
      ];
  }
  for (const [key, value] of Object.entries(pod.nodeSelector ?? {})) {
    if (own[key] !== value) yield* nodeKeyRefusals('nodeSelector', key, rules);
  }
  const { nodeAffinity, podAffinity, podAntiAffinity } = pod.affinity ?? {};
  yield* nodeAffinityRefusals(nodeAffinity, rules);
  for (const [field, terms] of Object.entries({ podAffinity, podAntiAffinity })) {
    const all = [
      ...(terms?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
      ...(terms?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((one) => one.podAffinityTerm),
    ];
    if (all.some((term) => term?.namespaces?.length || term?.namespaceSelector != null))
      yield [
        `affinity.${field}`,
        'names other namespaces, whose pods it could keep from nodes; accepted are terms without namespaces and namespaceSelector',
      ];
  }
}

function* classRefusals(pod: GuestPlacement, rules: GuestRules): Generator<Refusal> {
  const named = [
    ['schedulerName', 'schedulers', ['default-scheduler', ...rules.schedulers]],
    ['runtimeClassName', 'runtimeClasses', rules.runtimeClasses],
    ['priorityClassName', 'priorityClasses', rules.priorityClasses],
  ] as const;
  for (const [field, rule, accepted] of named) {
    const value = pod[field];
    if (value && !matchesAny(accepted, value))
      yield [field, `is ${value}; accepted: ${words(accepted)} ${settingText(rule)}`];
  }
  if (pod.priority && !pod.priorityClassName)
    yield ['priority', `is ${pod.priority}: guests do not push pods of the provider aside; leave it out`];
}

function* nodeAffinityRefusals(
  affinity: NonNullable<GuestPlacement['affinity']>['nodeAffinity'],
  rules: GuestRules,
): Generator<Refusal> {
  const terms = [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ preference }) => preference),
  ];
  for (const term of terms) {
    for (const { key } of term?.matchExpressions ?? []) yield* nodeKeyRefusals('affinity.nodeAffinity', key, rules);
    for (const { key } of term?.matchFields ?? [])
      yield ['affinity.nodeAffinity', `matches field ${key}: guests do not choose single nodes; leave matchFields out`];
  }
}

function* nodeKeyRefusals(field: string, key: string, { nodeLabels }: GuestRules): Generator<Refusal> {
  if (!matchesAny(nodeLabels, key))
    yield [field, `chooses nodes by ${key}; accepted are ${words(nodeLabels)} ${settingText('nodeLabels')}`];
}
