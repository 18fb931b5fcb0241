/** The diagnosis as text: the cause, what was seen, what to do; then what else was found. Pure. */
import type { Paint } from '#cli/output/style.ts';
import type { Finding } from './causes.ts';
import type { DoctorFacts } from './facts.ts';

export interface Diagnosis {
  readonly clusters: readonly string[];
  /** Absent: nothing is wrong. */
  readonly cause?: Finding;
  readonly others: readonly Finding[];
  /** What was looked at. */
  readonly looked: readonly string[];
}

export function diagnosisOf(facts: DoctorFacts, findings: readonly Finding[]): Diagnosis {
  const [cause, ...others] = findings;
  const { probed, broker } = facts;
  return {
    clusters: facts.clusters.map(({ cluster }) => cluster),
    ...(cause !== undefined && { cause }),
    others,
    looked: [
      ...facts.clusters.map(({ cluster, server }) => `${cluster} at ${server}`),
      ...(broker === undefined ? [] : [`broker ${broker.url}`]),
      ...(probed === undefined ? [] : [probed.none ?? `${probed.rows} probes between pods`]),
    ],
  };
}

export function diagnosisText({ cause, others, looked, clusters }: Diagnosis, paint: Paint): string {
  const seen = paint('faint', `looked at: ${looked.join('; ')}`);
  if (cause === undefined)
    return `${paint('good', 'nothing is wrong')} that can be seen ${clusters.length === 0 ? 'at the broker' : `in ${clusters.join(' and ')}`}\n${seen}\n`;
  return [
    `${paint('bad', 'cause')}    ${cause.text} (${cause.code}, in ${cause.at})`,
    ...cause.evidence.map((one, at) => `${at === 0 ? 'seen' : ''}`.padEnd(9) + one),
    `${'to do'.padEnd(9)}${cause.todo}`,
    ...(others.length === 0 ? [] : ['', 'also found, most of it because of that:']),
    ...others.flatMap(({ code, at, text, todo }) => [`- ${text} (${code}, in ${at})`, `  to do: ${todo}`]),
    seen,
    '',
  ].join('\n');
}
