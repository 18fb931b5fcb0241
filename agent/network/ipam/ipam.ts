/**
 * Grants of ranges and addresses, each keyed by its owner: asking again gives the same, releasing an owner frees what it had. Keeps nothing: the
 * grants live in the status of objects, and `current` takes them from there after a restart. Rules: docs/design/networking.md#how-are-ranges-and-addresses-granted. Pure.
 */
import {
  type CidrRange,
  formatAddress,
  formatCidr,
  overlap,
  parseAddress,
  parseCidr,
  rangeProblem,
  sizeOf,
} from '#shared/domain/cidr.ts';
import { AddressPool } from './address-pool.ts';
import { isInPools, PrefixTree } from './prefix-tree.ts';

/** Where ranges are granted from unless the installation says otherwise. */
const defaultPools: readonly string[] = ['10.0.0.0/8', '192.168.0.0/16', '172.16.0.0/12'];
/**
 * What a peer announces is kept only up to this prefix length. A smaller range can be aimed at one address, such as that of a resolver: it is moved to
 * a pool of its own, of the benchmark space (RFC 2544), where no host is.
 */
const aimed = { longerThan: 24, pool: '198.18.0.0/15' } as const;

type RefusalReason =
  | 'RangeRefused'
  | 'RangeTaken'
  | 'OutsidePools'
  | 'PoolExhausted'
  | 'NetworkNotGranted'
  | 'AddressesExhausted';
export interface Refusal {
  readonly reason: RefusalReason;
  /** Names what was asked for, and the pool or the holder. */
  readonly message: string;
}
export type Grant = { readonly granted: string } | { readonly refused: Refusal };

export interface Collision {
  readonly range: string;
  /** Owners of what it overlaps. */
  readonly with: readonly string[];
}

export interface PrefixRequest {
  readonly owner: string;
  readonly wanted: string;
  /** As asked, or not at all. */
  readonly immutable?: boolean;
  /** May overlap others that are shared. */
  readonly shared?: boolean;
  /** `announced`: by a peer, so that it may be aimed at a host of ours; `named`: announced, and named by this cluster's policy. Absent: our own. */
  readonly origin?: 'announced' | 'named';
  /** So many of its first addresses are never granted. */
  readonly preAllocated?: number;
  /** What it was granted before, by its status: kept if at all possible. */
  readonly current?: string | undefined;
}

interface PrefixGrant {
  readonly range: CidrRange;
  readonly addresses: AddressPool;
}

const refuse = (reason: RefusalReason, message: string): Grant => ({ refused: { reason, message } });

export class Ipam {
  readonly #pools: readonly CidrRange[];
  readonly #poolNames: string;
  readonly #tree = new PrefixTree();
  readonly #prefixes = new Map<string, PrefixGrant>();
  /** Address owner to the owner of its range. */
  readonly #networks = new Map<string, string>();
  readonly #occupied = new Map<string, readonly CidrRange[]>();
  readonly #aimed: { readonly longerThan: number; readonly pool: string };

  constructor(
    pools: readonly string[] = defaultPools,
    small: { readonly longerThan: number; readonly pool: string } = aimed,
  ) {
    this.#aimed = small;
    this.#pools = pools.map((text) => parseCidr(text)).filter((range) => range !== undefined);
    this.#poolNames = pools.join(', ');
    this.#pools.forEach((pool, i) => {
      const other = this.#pools.slice(0, i).find((one) => overlap(one, pool));
      if (other) throw new RangeError(`pools ${formatCidr(other)} and ${formatCidr(pool)} overlap`);
    });
    if (this.#pools.length !== pools.length) throw new RangeError(`pools are IPv4 ranges, got ${this.#poolNames}`);
  }

  grantPrefix(request: PrefixRequest): Grant {
    const { owner, wanted, current } = request;
    const known = this.#prefixes.get(owner);
    if (known) return { granted: formatCidr(known.range) };
    const range = parseCidr(wanted);
    const problem = rangeProblem(wanted);
    if (!range || problem) return refuse('RangeRefused', `the range wanted ${problem}`);
    const preAllocated = request.preAllocated ?? 0;
    if (preAllocated > sizeOf(range.length))
      return refuse(
        'RangeRefused',
        `preAllocated is ${preAllocated}, but ${wanted} has ${sizeOf(range.length)} addresses`,
      );
    const before = current === undefined ? undefined : parseCidr(current);
    if (before && this.#fits(before, request)) return this.#keep(request, before);
    const found = request.immutable ? this.#exactly(range, request) : this.#anywhere(range, request.origin);
    return 'refused' in found ? found : this.#keep(request, found);
  }

  /**
   * Ranges in use for something else, such as a node's addresses: never granted from now on, even where a holder has them already. Replaces what
   * `holder` had.
   */
  occupy(holder: string, ranges: readonly string[]): void {
    for (const range of this.#occupied.get(holder) ?? []) this.#tree.remove(range, holder);
    const parsed = ranges.map(parseCidr).filter((range) => range !== undefined);
    for (const range of parsed) this.#tree.add(range, holder, true);
    if (parsed.length === 0) this.#occupied.delete(holder);
    else this.#occupied.set(holder, parsed);
  }

  /** What `holder` occupies although it was granted to others before: reported, since neither can be moved from here. */
  collisionsOf(holder: string): readonly Collision[] {
    return (this.#occupied.get(holder) ?? []).flatMap((range) => {
      const others = new Set<string>();
      for (const [other, tolerant] of this.#tree.holders(range)) if (!tolerant && other !== holder) others.add(other);
      return others.size === 0 ? [] : [{ range: formatCidr(range), with: [...others].sort() }];
    });
  }

  /** `network` is the owner of a granted range. */
  grantAddress(owner: string, network: string, current?: string): Grant {
    const range = this.#prefixes.get(network);
    if (!range) return refuse('NetworkNotGranted', `${network} has no range yet`);
    const before = this.#networks.get(owner);
    if (before !== undefined && before !== network) this.releaseAddress(owner);
    const wanted = current === undefined ? undefined : parseAddress(current);
    const address = range.addresses.grant(owner, wanted);
    if (address === undefined)
      return refuse(
        'AddressesExhausted',
        `all ${range.addresses.size} addresses of ${network} (${formatCidr(range.range)}) are taken`,
      );
    this.#networks.set(owner, network);
    return { granted: formatAddress(address) };
  }

  releaseAddress(owner: string): void {
    const network = this.#networks.get(owner);
    if (network === undefined) return;
    this.#networks.delete(owner);
    this.#prefixes.get(network)?.addresses.release(owner);
  }

  /** With all addresses that were granted from it. */
  releasePrefix(owner: string): void {
    const known = this.#prefixes.get(owner);
    if (!known) return;
    this.#prefixes.delete(owner);
    this.#tree.remove(known.range, owner);
    for (const [address, network] of this.#networks) if (network === owner) this.#networks.delete(address);
  }

  prefixOf(owner: string): string | undefined {
    const known = this.#prefixes.get(owner);
    return known && formatCidr(known.range);
  }

  #fits(range: CidrRange, { shared, wanted, immutable }: PrefixRequest): boolean {
    if (immutable && formatCidr(range) !== wanted) return false;
    return shared ? this.#tree.isSharable(range) : this.#tree.isFree(range);
  }

  #exactly(range: CidrRange, { shared, wanted }: PrefixRequest): CidrRange | { refused: Refusal } {
    if (!shared && !isInPools(range, this.#pools))
      return {
        refused: {
          reason: 'OutsidePools',
          message: `${wanted} is in no pool (${this.#poolNames}) and cannot be moved`,
        },
      };
    if (shared ? this.#tree.isSharable(range) : this.#tree.isFree(range)) return range;
    const holders = new Set<string>();
    for (const [holder, tolerant] of this.#tree.holders(range)) if (!shared || !tolerant) holders.add(holder);
    return {
      refused: { reason: 'RangeTaken', message: `${wanted} overlaps ${[...holders].sort().slice(0, 5).join(', ')}` },
    };
  }

  #anywhere(range: CidrRange, origin: PrefixRequest['origin']): CidrRange | { refused: Refusal } {
    const isAimed = origin === 'announced' && range.length > this.#aimed.longerThan;
    const mayStay = origin === 'named' || (isInPools(range, this.#pools) && !isAimed);
    if (mayStay && this.#tree.isFree(range)) return range;
    const small = parseCidr(this.#aimed.pool);
    for (const pool of isAimed && small ? [small] : this.#pools) {
      const found = this.#tree.findFree(pool, range.length);
      if (found) return found;
    }
    return {
      refused: {
        reason: 'PoolExhausted',
        message: `${formatCidr(range)} is not free, and no other /${range.length} is in the pools ${isAimed ? this.#aimed.pool : this.#poolNames}`,
      },
    };
  }

  #keep({ owner, shared = false, preAllocated = 0 }: PrefixRequest, range: CidrRange): Grant {
    this.#tree.add(range, owner, shared);
    this.#prefixes.set(owner, { range, addresses: new AddressPool(range, preAllocated) });
    return { granted: formatCidr(range) };
  }
}
