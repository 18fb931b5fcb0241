/**
 * What a broker of commit 30013a1 had written when it was stopped: three tenants, one of them being deleted, joined clusters, peerings, a request
 * of another tenant, a webhook that fails with its deliveries. Recorded from such a process; signed requests and their hashes are left out.
 */
import { readFileSync } from 'node:fs';
import { openDatabase } from '../driver.ts';

interface Recorded {
  readonly format: number;
  readonly item: readonly (readonly (string | number | null)[])[];
  readonly outbox: readonly (readonly (string | number)[])[];
}

export const recorded = JSON.parse(readFileSync(new URL('./format-1.json', import.meta.url), 'utf8')) as Recorded;

/** Its tables, as that program made them. */
export function writeFormat1(file: string): void {
  const db = openDatabase(file);
  db.exec(`
    PRAGMA journal_mode = WAL;
    CREATE TABLE item (
      pk TEXT NOT NULL, sk TEXT NOT NULL, value TEXT NOT NULL, version INTEGER NOT NULL, expires_at INTEGER,
      PRIMARY KEY (pk, sk)
    ) WITHOUT ROWID;
    CREATE INDEX item_expiry ON item (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE outbox (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, at INTEGER NOT NULL, event TEXT NOT NULL
    );
    CREATE INDEX outbox_stream ON outbox (stream, seq);
    CREATE INDEX outbox_at ON outbox (at);
    BEGIN;
  `);
  const item = db.prepare('INSERT INTO item (pk, sk, value, version, expires_at) VALUES (?, ?, ?, ?, ?)');
  for (const row of recorded.item) item.run(...row);
  const event = db.prepare('INSERT INTO outbox (seq, stream, at, event) VALUES (?, ?, ?, ?)');
  for (const row of recorded.outbox) event.run(...row);
  db.exec(`PRAGMA user_version = ${recorded.format}; COMMIT`);
  db.close();
}
