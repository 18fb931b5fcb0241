/** The composition of functions that touch nothing: no table, no client. */
import type { Context } from 'aws-lambda';
import type { Control } from '#control/control.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type Composition, composeFrom } from './composition.ts';
import { createJsonLog } from './json-log.ts';

const refused = (): never => {
  throw new Error('the catalogue gives this function no right to the table');
};

/** Groups of use cases may be named, none may be used. */
const useCases = new Proxy({}, { get: refused });

export function withoutStore<E, R>(
  handler: (event: E, context: Context) => Promise<R>,
  version: string,
): (event: E, context: Context) => Promise<R> {
  composeFrom(
    (): Composition => ({
      control: new Proxy({} as Control, { get: () => useCases }),
      connections: {
        opened: refused,
        listens: refused,
        holderOf: refused,
        closed: refused,
        hangUp: refused,
        close: refused,
      },
      clock: systemClock,
      log: createJsonLog('info'),
      version,
      listen: refused,
    }),
  );
  return handler;
}
