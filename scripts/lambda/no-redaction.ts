/** Stands in for `@pinojs/redact` in bundles: `shared/ports/log-record.ts` masks a record before pino sees it, so pino has no redaction of its own. */
export default function noRedaction(): never {
  throw new Error('records are masked before pino writes them');
}
