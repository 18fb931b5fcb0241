/** Stands in for `safe-stable-stringify` in bundles: pino asks it only for what JSON itself cannot write, and says so when that fails too. */
export const configure = (): typeof JSON.stringify => JSON.stringify;
