/** Addresses of one range: each owner has at most one, each address at most one owner. Constant time per grant. Pure. */
import { type CidrRange, sizeOf } from '#shared/domain/cidr.ts';

export class AddressPool {
  readonly range: CidrRange;
  readonly #byOwner = new Map<string, number>();
  readonly #owners = new Map<number, string>();
  readonly #reserved: number;
  /** Never granted from here on, except by name. */
  #next: number;
  /** Given back, in that order: what was just released is not reused at once. */
  readonly #released = new Set<number>();

  constructor(range: CidrRange, reserved: number) {
    this.range = range;
    this.#reserved = reserved;
    this.#next = reserved;
  }

  get size(): number {
    return this.#byOwner.size;
  }

  /** The one it has, else `wanted` when that is free, else any; undefined when none is left. */
  grant(owner: string, wanted?: number): number | undefined {
    const known = this.#byOwner.get(owner);
    if (known !== undefined) return known;
    const address = wanted !== undefined && this.#isFree(wanted) ? wanted : this.#take();
    if (address === undefined) return undefined;
    this.#released.delete(address);
    this.#byOwner.set(owner, address);
    this.#owners.set(address, owner);
    return address;
  }

  release(owner: string): void {
    const address = this.#byOwner.get(owner);
    if (address === undefined) return;
    this.#byOwner.delete(owner);
    this.#owners.delete(address);
    if (address - this.range.base < this.#next) this.#released.add(address);
  }

  #isFree(address: number): boolean {
    const at = address - this.range.base;
    return at >= this.#reserved && at < sizeOf(this.range.length) && !this.#owners.has(address);
  }

  #take(): number | undefined {
    while (this.#next < sizeOf(this.range.length)) {
      const address = this.range.base + this.#next++;
      if (!this.#owners.has(address)) return address;
    }
    return this.#released.values().next().value;
  }
}
