/** Everything that the broker keeps for a tenant, line by line, without a secret in it. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Item, Page } from '../ports/store.ts';
import { partition } from '../store/keys.ts';
import { type Holding, holdings, partitionOf, perCluster } from './partitions.ts';

interface ExportLine {
  readonly kind: string;
  readonly id: string;
  readonly version: number;
  readonly value: unknown;
}

export interface TenantExport {
  /** A page of lines; ask again with the cursor until there is none. Each line is as of its own moment. */
  page(
    caller: Caller,
    cursor?: string,
    signal?: AbortSignal,
  ): Promise<{ readonly lines: readonly ExportLine[]; readonly cursor?: string }>;
}

/** Where to go on: a holding, the cluster in it, the last sort key. */
interface Place {
  readonly h: number;
  readonly c?: string | undefined;
  readonly k?: string | undefined;
}

const pageSize = 100;
/** An answer of the cloud holds 6 MB. */
const pageBytes = 2 * 1024 * 1024;

const secretNames = /^(hash|nonce|signednonce|password|privatekey|clientsecret|token|.*secrets?)$/i;

/** What could open anything is named and not told. Objects of kind Secret keep only the names of their data. */
export function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (typeof value !== 'object' || value === null) return value;
  const isSecret = 'kind' in value && value.kind === 'Secret';
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (secretNames.test(name) && (typeof member === 'string' || Array.isArray(member)))
        return [name, '[not exported]'];
      if (isSecret && (name === 'data' || name === 'stringData')) return [name, '[not exported]'];
      return [name, withoutSecrets(member)];
    }),
  );
}

export function createTenantExport({ store }: Pick<ControlDeps, 'store'>): TenantExport {
  const told: readonly (Holding & { readonly kind: string })[] = holdings.flatMap((holding) =>
    holding.kind === undefined ? [] : [{ ...holding, kind: holding.kind }],
  );

  /** The first cluster after `last`. A space is the lowest letter of a key. */
  async function clusterAfter(tenant: string, last: string | undefined, signal?: AbortSignal) {
    const from = last === undefined ? {} : { from: `${last} ` };
    const { items } = await store.query({ partition: partition.clusters(tenant), limit: 1, ...from }, signal);
    return items[0]?.sk;
  }

  return {
    async page(caller, cursor, signal) {
      mustHave(caller, 'tenant:export');
      const { tenant } = caller;
      const lines: ExportLine[] = [];
      let bytes = 0;
      let place: Place | undefined = placeOf(cursor, told.length);
      while (place !== undefined && lines.length < pageSize && bytes < pageBytes) {
        const holding: (typeof told)[number] | undefined = told[place.h];
        if (!holding) {
          place = undefined;
          break;
        }
        let cluster: string | undefined = place.c;
        if (perCluster(holding) && cluster === undefined) {
          cluster = await clusterAfter(tenant, undefined, signal);
          if (cluster === undefined) {
            place = { h: place.h + 1 };
            continue;
          }
        }
        const query = { partition: partitionOf(tenant, holding, cluster), limit: 20 };
        const page: Page<Item> = await store.query(
          place.k === undefined ? query : { ...query, cursor: place.k },
          signal,
        );
        for (const { sk, version, value } of page.items) {
          const id = cluster === undefined ? sk : `${cluster}/${sk}`;
          const kind = holding.kinds?.[sk.slice(0, sk.indexOf('_'))] ?? holding.kind;
          const line = { kind, id, version, value: withoutSecrets(value) };
          bytes += JSON.stringify(line).length;
          lines.push(line);
        }
        if (page.cursor !== undefined) place = { h: place.h, c: cluster, k: page.cursor };
        else {
          const next: string | undefined =
            cluster === undefined ? undefined : await clusterAfter(tenant, cluster, signal);
          place = next === undefined ? { h: place.h + 1 } : { h: place.h, c: next };
        }
      }
      if (place === undefined || place.h >= told.length) return { lines };
      return { lines, cursor: Buffer.from(JSON.stringify(place)).toString('base64url') };
    },
  };
}

function placeOf(cursor: string | undefined, sections: number): Place {
  if (cursor === undefined) return { h: 0 };
  try {
    const { h, c, k } = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as Record<string, unknown>;
    const ok =
      Number.isInteger(h) &&
      (h as number) >= 0 &&
      (h as number) < sections &&
      (c === undefined || (typeof c === 'string' && /^[-a-z0-9]{1,63}$/.test(c))) &&
      (k === undefined || (typeof k === 'string' && /^[\x20-\x7e]{1,1024}$/.test(k)));
    if (ok) return { h: h as number, c: c as string | undefined, k: k as string | undefined };
  } catch {
    // Said below.
  }
  throw new AppError('cursor_unknown', `cursor ${JSON.stringify(cursor)} is not one that the export handed out`, {
    detail: { field: 'cursor', value: cursor },
  });
}
