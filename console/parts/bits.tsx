/** Small parts that pages are made of: times, states, facts, commands to copy, empty states. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { now } from '../data/live.ts';
import type { Tone } from '../model/peering.ts';
import { absolute, labelTexts, left, quantities, relative, resourceNames, share } from '../model/text.ts';

export const Time = ({ at, none = 'never' }: { at: string | undefined; none?: string }) =>
  at === undefined ? (
    <span class="quiet">{none}</span>
  ) : (
    <time dateTime={at} title={absolute(at)}>
      {relative(at, now.value)}
    </time>
  );

export const State = ({ tone, children }: { tone: Tone; children: ComponentChildren }) => (
  <span class={`state ${tone}`}>{children}</span>
);

export const Labels = ({ of }: { of: Readonly<Record<string, string>> }) => (
  <span class="labels">
    {labelTexts(of).map((text) => (
      <span class="label" key={text}>
        {text}
      </span>
    ))}
  </span>
);

export type FactRow = readonly [title: string, value: ComponentChildren];

export const Facts = ({ rows }: { rows: readonly (FactRow | false | undefined)[] }) => (
  <dl class="facts">
    {rows
      .filter((row): row is FactRow => row !== false && row !== undefined)
      .map(([title, value]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);

/** A line to paste into a terminal. */
export function Command({ line }: { line: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(line);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <div class="command">
      <code>{line}</code>
      <button type="button" class="small" onClick={() => void copy()} aria-label={`Copy: ${line}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}

export const Section = ({
  title,
  children,
  actions,
}: {
  title: string;
  children: ComponentChildren;
  actions?: ComponentChildren;
}) => (
  <section class="card" aria-label={title}>
    <header>
      <h2>{title}</h2>
      <div class="actions">{actions}</div>
    </header>
    {children}
  </section>
);

/** What to do when there is nothing yet. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p>
      <strong>{title}</strong>
    </p>
    {children}
  </div>
);

export const Failure = ({ message }: { message: string | undefined }) =>
  message === undefined ? null : (
    <p class="failure" role="alert">
      {message}
    </p>
  );

type Quantities = Readonly<Record<string, string>>;

interface BarsProps {
  readonly part: Quantities;
  readonly whole: Quantities;
  readonly words: string;
  /** A full one is what was wanted; otherwise it is marked. */
  readonly mayFill?: boolean;
}

/** One bar for each resource: how much of `whole` is `part`. */
export function Bars({ part, whole, words, mayFill }: BarsProps) {
  const names = resourceNames(whole);
  if (names.length === 0) return <p class="quiet">{quantities(part, 'nothing')}</p>;
  return (
    <table class="bars">
      <caption class="hidden">{words}</caption>
      <tbody>
        {names.map((name) => {
          const used = part[name] ?? '0';
          const fraction = share(used, whole[name] ?? '0');
          return (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="bar">
                {fraction !== undefined && (
                  <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                    <rect class="whole" width="100" height="8" />
                    <rect class={fraction > 0.9 && !mayFill ? 'part full' : 'part'} width={100 * fraction} height="8" />
                  </svg>
                )}
              </td>
              <td>
                {used} of {whole[name]} {words}
                {!mayFill && left(used, whole[name] ?? '') !== undefined && `, ${left(used, whole[name] ?? '')} free`}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
