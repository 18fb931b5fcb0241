/** A process that changes a SQLite file through the use cases as fast as it can and says what was acknowledged, until it is killed. */
import { writeSync } from 'node:fs';
import { silentLog } from '#shared/ports/log.ts';
import { type Database, openDatabase } from '../adapters/sqlite/driver.ts';
import { openSqliteStore } from '../adapters/sqlite/sqlite-store.ts';
import { createControl } from '../control.ts';
import { silentChannel } from '../ports/agent-channel.ts';
import { newAgentKeys, signRequest } from './agent-keys.ts';
import { adminOf, brokerUrl, origin } from './broker-clusters.ts';
import { openFacts } from './simulated-cluster.ts';

const [path = '', run = '0', dieAt = '0'] = process.argv.slice(2);
const clock = { now: () => Date.now(), sleep: () => Promise.resolve() };
let count = 0;
const ids = {
  next: (prefix: string) => {
    count += 1;
    return `${prefix}_${run.padStart(6, '0')}${String(count).padStart(20, '0')}`;
  },
  bytes: (length: number) => crypto.getRandomValues(new Uint8Array(length)),
};

let statements = 0;
/** Dies before the chosen write reaches SQLite: in the middle of a transaction as well as at its end. */
function nextWrite(): void {
  statements += 1;
  if (statements === Number(dieAt)) process.kill(process.pid, 'SIGKILL');
}

function crashing(database: Database): Database {
  return {
    exec(sql) {
      if (sql === 'COMMIT') nextWrite();
      database.exec(sql);
    },
    prepare(sql) {
      const statement = database.prepare(sql);
      return {
        run(...values) {
          nextWrite();
          return statement.run(...values);
        },
        get: (...values) => statement.get(...values),
        all: (...values) => statement.all(...values),
      };
    },
    close: () => database.close(),
  };
}

const store = openSqliteStore({ path, clock, open: (file) => crashing(openDatabase(file)) });
const control = createControl({
  store,
  clock,
  ids,
  log: silentLog,
  channel: silentChannel,
  broker: () => ({ url: brokerUrl }),
});
const admin = adminOf('default');
const keys = newAgentKeys();
const acknowledge = (what: string, id: string): void => void writeSync(1, `${what} ${id}\n`);

async function join(clusterId: string): Promise<void> {
  const { token } = await control.clusters.createJoinToken(admin, clusterId);
  const { secret } = JSON.parse(Buffer.from(token.slice('isthmus1.'.length), 'base64url').toString()) as {
    secret: string;
  };
  const body = { clusterId, token: secret, publicKey: keys.publicKey, facts: openFacts };
  const request = {
    keys,
    tenant: 'default',
    clusterId,
    audience: brokerUrl,
    now: clock.now(),
    path: '/v1/agent/enroll',
  };
  await control.clusters.enroll(body, await signRequest({ ...request, body: JSON.stringify(body) }));
}

await control.tenants.bootstrap('default', origin);
let previous: string | undefined;
for (let i = 0; ; i += 1) {
  const { key } = await control.tenants.createKey(admin, { name: `key ${i}`, role: 'viewer' });
  acknowledge('key', key.id);
  const cluster = `c${run}-${i}`;
  await join(cluster);
  acknowledge('cluster', cluster);
  if (previous !== undefined) {
    const { peering } = await control.peerings.request(admin, { consumer: previous, provider: cluster, resources: {} });
    acknowledge('peering', peering.id);
    await control.peerings.unpeer(admin, peering.id);
    acknowledge('unpeer', peering.id);
  }
  previous = cluster;
}
