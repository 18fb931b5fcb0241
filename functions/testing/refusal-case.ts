/** What a case of refusal is, and the steps that many of them share. */
import { expect } from 'vitest';
import type { ErrorCode } from '#shared/errors/codes.ts';
import type { ApiAnswer, ApiFixtureOptions } from './api-fixture.ts';
import type { RefusingBroker } from './refusing-broker.ts';

/** `without` and `store` are of the broker; the rest is what leads to the refusal. */
type Meeting = (b: RefusingBroker) => Promise<ApiAnswer>;
interface Case extends ApiFixtureOptions {
  readonly meet: Meeting;
}
/** By operation. */
export type Cases = Readonly<Record<string, Partial<Record<ErrorCode, Meeting | Case>>>>;

export async function times(count: number, work: (i: number) => Promise<ApiAnswer>): Promise<void> {
  for (let i = 0; i < count; i += 1) expect((await work(i)).status).toBe(201);
}
export const made = async (answer: Promise<ApiAnswer>): Promise<string> => {
  const { body } = await answer;
  return String(body.id ?? body.webhook?.id ?? body.key?.id ?? body.invitation?.id);
};
