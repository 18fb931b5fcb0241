/** Paths that the API server proxy serves itself. */

export const certificatePath = '/certificate';
