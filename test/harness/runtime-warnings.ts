/** Warnings of the runtime that are defects of ours: too many listeners on one emitter or signal is how a leak begins. */

/** As Node prints it on standard error, with what follows when it was asked for the place; in a log of a container each line says when. */
const stamp = '(?:\\S+ std(?:out|err) [FP] )?';
const printed = new RegExp(`^${stamp}\\(node:\\d+\\) (MaxListenersExceededWarning: .*(?:\\n${stamp} {4}at .*)*)`, 'gm');

export const isDefect = ({ name }: { readonly name: string }): boolean => name === 'MaxListenersExceededWarning';

/** Each of them in what a process has printed. */
export const runtimeWarnings = (text: string): readonly string[] =>
  [...text.matchAll(printed)].map(([, warning = '']) => warning);
