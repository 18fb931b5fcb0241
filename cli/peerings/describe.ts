/** One peering in full, as text: both ends' conditions, what is waited for, what to do next. Pure. */
import { age, elapsed } from '#cli/output/duration.ts';
import type { Paint } from '#cli/output/style.ts';
import { toneOf } from '#cli/output/style.ts';
import type { Peering, PeeringCondition } from '#shared/schema/api/resources.ts';
import { linkLines, networkText } from './describe-link.ts';
import { nextStep } from './next-step.ts';

export const resourcesText = (resources: Readonly<Record<string, string>> | undefined): string =>
  Object.entries(resources ?? {})
    .map(([name, amount]) => `${name} ${amount}`)
    .join(', ');

export const labelsText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

const mark = { True: '✓', False: '✗', Unknown: '?' } as const;

function conditionLines(condition: PeeringCondition, paint: Paint, now: number): string[] {
  const head = `  ${paint(toneOf(condition.status), mark[condition.status])} ${condition.type.padEnd(17)} ${condition.reason}`;
  const since = paint('faint', `(for ${age(Date.parse(condition.since), now)})`);
  const lines = [`${head} ${since}`];
  if (condition.message !== '') lines.push(`      ${condition.message}`);
  if (condition.action !== '' && condition.status !== 'True') lines.push(`      to do: ${condition.action}`);
  return lines;
}

export function describePeering(peering: Peering, paint: Paint, now: number): string {
  const created = Date.parse(peering.createdAt);
  const phaseAt = peering.phaseSince[peering.phase];
  const rows: [string, string][] = [
    ['Peering', `${peering.consumer} -> ${peering.provider} (${peering.id})`],
    ['Phase', paint(toneOf(peering.phase), peering.phase) + (phaseAt ? ` for ${age(Date.parse(phaseAt), now)}` : '')],
    ['Class', peering.class],
    ['Asked', resourcesText(peering.resources) || 'as much as the provider gives'],
    ['Granted', resourcesText(peering.granted) || '-'],
    ['Node', `${peering.nodeName} in ${peering.consumer}`],
    ...(peering.network ? [['Network', networkText(peering)] as [string, string]] : []),
    [
      'Owner',
      peering.owner.kind === 'object'
        ? `Peering ${peering.owner.name} in ${peering.consumer}: change it there`
        : 'broker: change it with `isthmus peer`',
    ],
    ['Labels', labelsText(peering.labels) || '-'],
    ['Age', age(created, now)],
  ];
  if (peering.across) {
    const { side, peerTenant, by, limits, endedBy } = peering.across;
    const agreed = `${side === 'consumer' ? 'provider' : 'consumer'} is of tenant ${peerTenant}, by ${by}`;
    const most = resourcesText(limits);
    const ended = endedBy ? `; ended by the ${endedBy}` : '';
    rows.push(['Tenants', `${agreed}${most ? `, at most ${most}` : ''}${ended}`]);
  }
  const lines = rows.map(([name, value]) => `${`${name}:`.padEnd(10)}${value}`);

  lines.push(...linkLines(peering, paint, now));

  const steps = Object.entries(peering.phaseSince)
    .map(([phase, at]) => ({ phase, at: Date.parse(at) }))
    .sort((a, b) => a.at - b.at);
  lines.push('', 'Timeline:', ...steps.map(({ phase, at }) => `  +${elapsed(at - created).padEnd(8)} ${phase}`));

  const sides = [
    ['both', 'both sides'],
    ['consumer', `consumer ${peering.consumer}`],
    ['provider', `provider ${peering.provider}`],
  ] as const;
  for (const [side, title] of sides) {
    const here = peering.conditions.filter((condition) => condition.side === side);
    if (here.length === 0) continue;
    lines.push('', `Conditions of ${title}:`, ...here.flatMap((condition) => conditionLines(condition, paint, now)));
  }
  if (peering.warnings?.length) {
    const shown = peering.warnings.map(({ side, message }) => `  ${peering[side]}: ${message}`);
    lines.push('', 'Reports that could not be read in full:', ...shown);
  }
  if (peering.leftBehind.length > 0) {
    lines.push('', 'Left behind on a dead side:', ...peering.leftBehind.map((what) => `  ${what}`));
  }
  lines.push('', `Waiting for: ${peering.waitingFor || 'nothing'}`, `Next step:   ${nextStep(peering)}`);
  return `${lines.join('\n')}\n`;
}
