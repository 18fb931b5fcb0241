/** Keeps the front door open while a consumer may come by it, with a certificate for every address by which it is called. */

import { ensureDoorAuthority } from '#agent/peering/credentials/door-authority.ts';
import { type BoundAccount, requestToken } from '#agent/peering/credentials/issue-token.ts';
import { type DoorAuthority, issueDoorServing } from '#agent/pki/door-certificates.ts';
import { isFresh, type ServingCertificate } from '#agent/pki/webhook-certificate.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { networkPort } from '#shared/domain/network-keys.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { AccountTokens } from './account-tokens.ts';
import { doorHosts, rememberedCallers } from './door-callers.ts';
import { type FrontDoor, openFrontDoor } from './front-door.ts';

export interface DoorKeeperDeps {
  readonly api: KubeApi;
  readonly tenants: Cache<Tenant>;
  /** Of all peers. */
  readonly secrets: Cache<Secret>;
  readonly systemNamespace: string;
  readonly upstream: { readonly server: URL; readonly ca: string | undefined };
  readonly clock: Clock;
  readonly log: Log;
  /** Default: the well-known one; 0: any. */
  readonly port?: number;
  readonly host?: string;
}

export interface DoorKeeper {
  /** The port of the door, opened or kept; undefined while no Tenant asks for one. */
  ensure(signal: AbortSignal): Promise<number | undefined>;
  close(): Promise<void>;
}

/** Of the tokens that the door uses: the API server's minimum is ten minutes. */
const tokenSeconds = 3600;

interface OpenDoor {
  readonly door: FrontDoor;
  readonly tokens: AccountTokens;
  readonly authority: DoorAuthority;
  serving: ServingCertificate;
}

export function createDoorKeeper(deps: DoorKeeperDeps): DoorKeeper {
  const { api, tenants, secrets, systemNamespace, clock, log, upstream, host } = deps;
  let opened: OpenDoor | undefined;
  const callers = rememberedCallers(secrets, tenants);

  async function close(): Promise<void> {
    const was = opened;
    opened = undefined;
    if (was === undefined) return;
    await was.door.close();
    log.info('front door closed');
  }

  async function open(hosts: readonly string[], authority: DoorAuthority): Promise<OpenDoor> {
    const serving = issueDoorServing(authority, hosts, clock.now());
    const request = (account: BoundAccount) => requestToken(api, account, tokenSeconds, AbortSignal.timeout(30_000));
    const tokens = new AccountTokens(request, clock);
    const door = await openFrontDoor({
      ...{ serving, authority: authority.certificate, tokens, upstream, clock },
      callerOf: (digest) => callers().get(digest),
      port: deps.port ?? networkPort.frontDoor,
      ...(host !== undefined && { host }),
      log: log.with({ part: 'front-door' }),
    });
    log.info('front door opened', { port: door.port });
    return { door, tokens, authority, serving };
  }

  return {
    async ensure(signal) {
      const hosts = doorHosts(tenants.list());
      if (hosts.length === 0) {
        await close();
        return undefined;
      }
      const authority = await ensureDoorAuthority(api, systemNamespace, clock.now(), signal);
      if (opened !== undefined && opened.authority.certificate !== authority.certificate) await close();
      opened ??= await open(hosts, authority);
      if (!isFresh(opened.serving, hosts, clock.now())) {
        opened.serving = issueDoorServing(authority, hosts, clock.now());
        opened.door.serve(opened.serving);
      }
      opened.door.retain();
      opened.tokens.retain([...callers().values()]);
      return opened.door.port;
    },
    close,
  };
}
