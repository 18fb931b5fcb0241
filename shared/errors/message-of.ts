/** The message of a thrown value, which need not be an Error. */

/** `error.message`; of a thrown value that is no Error, the value as text. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
