/** `-o yaml|json` of commands that make objects: they print each object that they would write, and write none. */

import type { CliIo } from '#cli/output/io.ts';
import { printObject } from '#cli/output/print.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { KubeClient } from './open.ts';

/** `output` undefined: the same client. */
export function printedInstead(io: CliIo, output: 'json' | 'yaml' | undefined, kube: KubeClient): KubeClient {
  if (output === undefined) return kube;
  const print = async <T extends KubeObject>(_type: unknown, object: T): Promise<T> => {
    printObject(io, output, object);
    return object;
  };
  return { ...kube, apply: print, create: print };
}
