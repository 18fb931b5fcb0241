/** Colour, only where a person looks at a terminal and has not asked for none (NO_COLOR). */
import { styleText } from 'node:util';
import type { CliIo, Out } from './io.ts';

export type Tone = 'good' | 'bad' | 'wait' | 'faint' | 'strong';
export type Paint = (tone: Tone, text: string) => string;

const formats = { good: 'green', bad: 'red', wait: 'yellow', faint: 'dim', strong: 'bold' } as const;

export function paintFor(out: Out, env: CliIo['env']): Paint {
  const coloured = out.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  return (tone, text) => (coloured ? styleText(formats[tone], text, { validateStream: false }) : text);
}

/** The tone in which a peering phase, a condition status or a cluster state is shown. */
export function toneOf(word: string): Tone {
  if (['Ready', 'True', 'connected', 'active'].includes(word)) return 'good';
  if (['Failed', 'Degraded', 'False', 'disconnected', 'revoked', 'expired'].includes(word)) return 'bad';
  return 'wait';
}
