/** Files into one tar of bounded size. Pure. */
import { type TarEntry, writeTar } from '#shared/archive/tar.ts';
import type { BundleFile } from './collect.ts';

/** Before it is compressed. */
const mostBytes = 40_000_000;
/** What does not fit into a tar header. */
const mostName = 99;

interface Archive {
  readonly tar: Buffer;
  /** What had no room. */
  readonly cut: readonly string[];
}

export function archiveOf(files: readonly BundleFile[]): Archive {
  const cut: string[] = [];
  const entries: TarEntry[] = [];
  let left = mostBytes;
  for (const { name, text } of files) {
    const content = Buffer.from(text);
    if (content.length > left) {
      cut.push(`${name}: the archive has ${mostBytes} bytes already`);
      continue;
    }
    left -= content.length;
    entries.push({
      name: Buffer.byteLength(name) > mostName ? shortened(name) : name,
      mode: 0o600,
      kind: 'file',
      content,
    });
  }
  return { tar: writeTar(entries), cut };
}

/** The end says which container it is of. */
const shortened = (name: string): string => {
  const slash = name.lastIndexOf('/');
  return `${name.slice(0, slash + 1)}…${name.slice(-(mostName - slash - 4))}`.slice(0, mostName);
};
