/**
 * What a database file looks like, by the number in its header. A change of what items mean or where they lie is a step here, with a number of its
 * own: the keys that it reads and writes are those of its time, so they are spelled out. Steps run in one transaction, all or none.
 */
import { createHash } from 'node:crypto';
import type { Database } from './driver.ts';

export const formatOf = (db: Database): number => {
  const { user_version: format } = db.prepare('PRAGMA user_version').get() as { readonly user_version: number };
  return format;
};

interface Row {
  readonly pk: string;
  readonly sk: string;
  readonly value: string;
  readonly expires_at: number | null;
}

/** By the format that they begin with. */
const steps: Readonly<Record<number, (db: Database) => void>> = {
  1: dueOfAllTenants,
  2: countersAndIndexes,
  3: heardOfAllClusters,
};

/** The one that this program reads and writes. */
export const currentFormat = 1 + Object.keys(steps).length;

/** Brings a database to the current format. One that has it already stays as it is. */
export function upgrade(db: Database): void {
  db.exec('BEGIN IMMEDIATE');
  try {
    for (let format = formatOf(db); format < currentFormat; format += 1) steps[format]?.(db);
    db.exec(`PRAGMA user_version = ${currentFormat}; COMMIT`);
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

/** Of all tenants. What a cluster or partner has that is itself called so lies one level deeper and is none of these. */
const rowsOf = (db: Database, partition: string): Row[] =>
  db
    .prepare('SELECT pk, sk, value, expires_at FROM item WHERE pk LIKE ? AND pk NOT LIKE ?')
    .all(`t/%/${partition}`, `t/%/%/${partition}`) as Row[];

/** 1 to 2: what comes due lay with its tenant, and lies with what comes due of all others. */
function dueOfAllTenants(db: Database): void {
  const insert = db.prepare('INSERT INTO item (pk, sk, value, version, expires_at) VALUES (?, ?, ?, 1, ?)');
  const remove = db.prepare('DELETE FROM item WHERE pk = ? AND sk = ?');
  const change = db.prepare('UPDATE item SET value = ? WHERE pk = ? AND sk = ?');
  const tenantOf = (pk: string): string => pk.split('/')[1] ?? '';
  for (const { pk, sk, value, expires_at } of rowsOf(db, 'due')) {
    const [time = '', ...rest] = sk.split('/');
    const id = rest.join('/');
    insert.run(`system/due-looks/${shardOf(tenantOf(pk), id, 4)}`, `${time}/${tenantOf(pk)}/${id}`, value, expires_at);
    remove.run(pk, sk);
  }
  for (const { pk, sk, expires_at } of rowsOf(db, 'webhook-due')) {
    const [receiver = '', time = '', event = ''] = sk.split('/');
    const value = JSON.stringify({ receiver, event });
    change.run(value, pk, sk);
    const tenant = tenantOf(pk);
    const place = `system/due-deliveries/${shardOf(tenant, receiver, 4)}`;
    insert.run(place, `${time}/${tenant}/${receiver}/${event}`, value, expires_at);
  }
  const tenants = db.prepare("SELECT sk, value FROM item WHERE pk = 'system/tenants'").all() as Row[];
  for (const { sk, value } of tenants) {
    if ((JSON.parse(value) as { readonly deleting?: boolean }).deleting) insert.run('system/deleting', sk, '{}', null);
  }
}

function shardOf(tenant: string, id: string, shards: number): number {
  let hash = 0;
  for (const letter of `${tenant}/${id}`) hash = (Math.imul(hash, 31) + letter.charCodeAt(0)) >>> 0;
  return ((hash ^ (hash >>> 15)) >>> 0) % shards;
}

/**
 * 2 to 3: clusters and peerings were counted item by item, and have counters; audit records, clusters and peerings were looked for by reading all, and have
 * items by which they are found; the directory was one partition, and is eight.
 */
function countersAndIndexes(db: Database): void {
  counters(db);
  const insert = db.prepare('INSERT INTO item (pk, sk, value, version, expires_at) VALUES (?, ?, ?, 1, ?)');
  const tenantOf = (pk: string): string => pk.split('/')[1] ?? '';
  for (const { pk, sk, value, expires_at } of rowsOf(db, 'audit')) {
    const record = JSON.parse(value) as Readonly<Record<string, string>>;
    for (const field of ['subject', 'principal', 'action']) {
      const hash = createHash('sha256').update(`${field} ${record[field]}`).digest('hex').slice(0, 16);
      insert.run(`t/${tenantOf(pk)}/audit-by`, `${hash}/${sk}`, '{}', expires_at);
    }
  }
  const published = db.prepare("SELECT sk FROM item WHERE pk = 'system/directory'").all() as Pick<Row, 'sk'>[];
  const move = db.prepare("UPDATE item SET pk = ? WHERE pk = 'system/directory' AND sk = ?");
  for (const { sk } of published) {
    const [tenant = '', cluster = ''] = sk.split('/');
    move.run(`system/directory/${shardOf(tenant, cluster, 8)}`, sk);
  }
  for (const kind of ['cluster', 'peering'] as const) {
    for (const { pk, sk, value, expires_at } of rowsOf(db, `${kind}s`)) {
      const record = JSON.parse(value) as { readonly labels?: object; readonly spec?: { readonly labels?: object } };
      for (const [name, text] of Object.entries(record.spec?.labels ?? record.labels ?? {}))
        insert.run(`t/${tenantOf(pk)}/labels`, `${kind}/${name}=${text}/${sk}`, '{}', expires_at);
    }
  }
}

function counters(db: Database): void {
  const counts = new Map<string, number>();
  const live = { clusters: "value ->> '$.state' = 'joined'", peerings: "value ->> '$.state.phase' <> 'Gone'" };
  for (const [what, condition] of Object.entries(live)) {
    const rows = db
      .prepare(`SELECT pk, count(*) AS n FROM item WHERE pk LIKE ? AND pk NOT LIKE ? AND ${condition} GROUP BY pk`)
      .all(`t/%/${what}`, `t/%/%/${what}`) as { readonly pk: string; readonly n: number }[];
    for (const { pk, n } of rows) counts.set(`t/${pk.split('/')[1]}/counts ${what}`, n);
  }
  const insert = db.prepare('INSERT INTO item (pk, sk, value, version) VALUES (?, ?, ?, 1)');
  for (const [place, n] of counts) {
    const [pk = '', sk = ''] = place.split(' ');
    insert.run(pk, sk, String(n));
  }
}

/** 3 to 4: when an agent was last heard, and its revision, lay with its cluster, and lie with those of all clusters of the tenant. */
function heardOfAllClusters(db: Database): void {
  const found = db
    .prepare("SELECT pk, sk FROM item WHERE pk LIKE 't/%/cluster/%' AND sk IN ('revision', 'seen')")
    .all() as Pick<Row, 'pk' | 'sk'>[];
  const move = db.prepare('UPDATE item SET pk = ?, sk = ? WHERE pk = ? AND sk = ?');
  for (const { pk, sk } of found) {
    const [, tenant = '', kind, cluster = ''] = pk.split('/');
    if (kind === 'cluster') move.run(`t/${tenant}/heard`, `${cluster}!${sk}`, pk, sk);
  }
}
