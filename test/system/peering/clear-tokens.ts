/** Finds tokens of consumers' accounts that can be read: in objects, base64 and all, and in lines of logs. */
import type { KubeApi } from '#kube/model/types.ts';

interface Resources {
  readonly resources: readonly { readonly name: string; readonly kind: string; readonly verbs: readonly string[] }[];
}
interface Groups {
  readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
}
interface Items {
  readonly items?: readonly { readonly metadata: { readonly name: string; readonly namespace?: string } }[];
}

/** The accounts that the JSON web tokens in a text are of, as far as they are accounts of consumers. */
export const tokensIn = (text: string): string[] =>
  [...text.matchAll(/[\w-]+\.([\w-]+)\.[\w-]+/g)].flatMap(([, claims = '']) => {
    const account = /system:serviceaccount:[^":]+:(isthmus-(?:peer|slice)[^"]*)/.exec(
      Buffer.from(claims, 'base64url').toString(),
    );
    return account?.[1] === undefined ? [] : [account[1]];
  });

/** With all that is base64 in it decoded, and what is base64 in that. */
function* readings(value: unknown, depth = 0): Generator<string> {
  if (typeof value === 'string') {
    yield value;
    if (depth < 3 && value.length > 40 && /^[A-Za-z0-9+/_=-]+$/.test(value))
      yield* readings(Buffer.from(value, 'base64').toString(), depth + 1);
    for (const [part] of depth < 3 ? value.matchAll(/[A-Za-z0-9+/=]{200,}/g) : [])
      if (part !== value) yield* readings(Buffer.from(part, 'base64').toString(), depth + 1);
  } else if (typeof value === 'object' && value !== null) {
    for (const one of Object.values(value)) yield* readings(one, depth);
  }
}

/** `Kind namespace/name: account` for each token in any object of the cluster. */
export async function tokensInObjects(api: KubeApi): Promise<string[]> {
  const { groups } = JSON.parse(await api.getPath('/apis')) as Groups;
  const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
  const found: string[] = [];
  for (const root of roots) {
    const { resources } = JSON.parse(await api.getPath(root)) as Resources;
    for (const { name, kind, verbs } of resources) {
      if (name.includes('/') || !verbs.includes('list')) continue;
      const { items } = JSON.parse(await api.getPath(`${root}/${name}`)) as Items;
      for (const object of items ?? [])
        for (const reading of readings(object))
          for (const account of tokensIn(reading))
            found.push(
              `${kind} ${[object.metadata.namespace, object.metadata.name].filter(Boolean).join('/')}: ${account}`,
            );
    }
  }
  return [...new Set(found)];
}
