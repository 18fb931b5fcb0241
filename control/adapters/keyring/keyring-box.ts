/**
 * A secret box with several keys, kept together elsewhere and read once: the newest seals, each opens what it sealed. Hence a key is replaced
 * by adding another one, and nothing has to be sealed again at that moment.
 */
import { hkdfSync } from 'node:crypto';
import * as z from 'zod';
import type { Clock } from '#shared/ports/clock.ts';
import type { SecretBox } from '../../ports/secret-box.ts';
import { boxKeyBytes, createSealedBox } from '../sealed-box/sealed-box.ts';

/** `{"k2": "…", "k1": "…"}`: the highest number seals. Long random texts, from which the keys are derived. */
const Keyring = z.record(z.string().regex(/^k[1-9]\d{0,5}$/), z.string().min(43));

export interface KeyringBoxOptions {
  /** The keyring as JSON text. Called at the first use, and again for a key that is not on it. */
  readonly read: (signal?: AbortSignal) => Promise<string>;
  readonly clock: Clock;
}

/** Rate limit of reloads: invalid boxes must not cause a read each. */
const rereadMs = 10_000;
const purpose = 'isthmus secret box v1';

interface Keys {
  readonly newest: string;
  readonly boxes: ReadonlyMap<string, SecretBox>;
  readonly readAt: number;
}

export function createKeyringBox({ read, clock }: KeyringBoxOptions): SecretBox {
  let held: Keys | undefined;

  async function load(signal?: AbortSignal): Promise<Keys> {
    held = { ...keysIn(await read(signal)), readAt: clock.now() };
    return held;
  }

  async function boxNamed(name: string, signal?: AbortSignal): Promise<SecretBox> {
    const keys = held ?? (await load(signal));
    const known = keys.boxes.get(name);
    if (known !== undefined) return known;
    const fresh = clock.now() - keys.readAt >= rereadMs ? await load(signal) : keys;
    const box = fresh.boxes.get(name);
    if (box === undefined) throw new Error('this was sealed with a key that is not on the keyring');
    return box;
  }

  return {
    async seal(secret, context, signal) {
      const { newest, boxes } = held ?? (await load(signal));
      const sealed = await (boxes.get(newest) as SecretBox).seal(secret, context, signal);
      return `${newest}.${sealed}`;
    },
    async open(text, context, signal) {
      const dot = text.indexOf('.');
      const box = await boxNamed(text.slice(0, Math.max(0, dot)), signal);
      return box.open(text.slice(dot + 1), context, signal);
    },
  };
}

function keysIn(text: string): Omit<Keys, 'readAt'> {
  const parsed = Keyring.safeParse(jsonOf(text));
  const names = Object.keys(parsed.data ?? {}).sort((a, b) => Number(b.slice(1)) - Number(a.slice(1)));
  const [newest] = names;
  // The text itself must never stand in an error.
  if (!parsed.success || newest === undefined) {
    throw new Error('the keyring is not {"k1": "…"} with at least one key of 43 characters or more');
  }
  const boxes = new Map(names.map((name) => [name, createSealedBox(keyFrom(parsed.data[name] ?? ''))]));
  return { newest, boxes };
}

const keyFrom = (text: string): Uint8Array => new Uint8Array(hkdfSync('sha256', text, '', purpose, boxKeyBytes));

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
