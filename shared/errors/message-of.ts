/** The text of whatever was thrown. */

/** `error.message`; of a thrown value that is no Error, the value as text. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
