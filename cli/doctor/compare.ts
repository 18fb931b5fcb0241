/** What of an installation is other than this program would install it. Pure. */
import { agentRights } from '#cli/install/rights-manifests.ts';
import type { ClusterRole, CustomResourceDefinition } from '#shared/domain/core-kinds.ts';
import { sameContent } from '#shared/domain/json-equality.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { customResourceDefinitions } from '#shared/schema/crd.ts';

export const wantedRights: readonly KubeObject[] = agentRights();

type Rights = KubeObject & Pick<ClusterRole, 'rules'> & { readonly subjects?: unknown; readonly roleRef?: unknown };

/** Rules with names differ by platform; the others are the same everywhere. */
const lacksRule = (wanted: Rights, live: Rights): boolean =>
  (wanted.rules ?? []).some(
    (rule) => rule.resourceNames === undefined && !(live.rules ?? []).some((one) => sameContent(one, rule)),
  );

/** `KIND NAME is missing`, or what it lacks. `live` in the order of `wantedRights`; undefined: absent. */
export const rightsOtherThan = (live: readonly (KubeObject | undefined)[]): string[] =>
  wantedRights.flatMap((wanted: Rights, at) => {
    const found = live[at] as Rights | undefined;
    const { kind, metadata } = wanted;
    const what = `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`;
    if (found === undefined) return [`${what} is missing`];
    if (lacksRule(wanted, found)) return [`${what} lacks rules`];
    if (wanted.subjects !== undefined && !sameContent(found.subjects, wanted.subjects))
      return [`${what} has other subjects`];
    return wanted.roleRef === undefined || sameContent(found.roleRef, wanted.roleRef)
      ? []
      : [`${what} binds another role`];
  });

/** The server adds defaults and drops what is empty: what is wanted has to be in what is there. Descriptions change nothing. */
function contains(live: unknown, wanted: unknown): boolean {
  if (live === undefined && typeof wanted === 'object' && wanted !== null) return Object.keys(wanted).length === 0;
  if (Array.isArray(wanted))
    return Array.isArray(live) && live.length === wanted.length && wanted.every((one, i) => contains(live[i], one));
  if (typeof wanted !== 'object' || wanted === null) return live === wanted;
  if (typeof live !== 'object' || live === null || Array.isArray(live)) return false;
  const there = live as Readonly<Record<string, unknown>>;
  return Object.entries(wanted).every(
    ([key, value]) => value === undefined || key === 'description' || contains(there[key], value),
  );
}

export function crdsOtherThan(live: readonly CustomResourceDefinition[]): { name: string; how: string }[] {
  const byName = new Map(live.map((crd) => [crd.metadata.name, crd]));
  return customResourceDefinitions().flatMap(({ metadata: { name }, spec: wanted }) => {
    const found = byName.get(name);
    if (found === undefined) return [{ name, how: 'is missing' }];
    const [version] = wanted.versions;
    const served = found.spec.versions.find((one) => one.name === version?.name);
    if (served?.served !== true) return [{ name, how: `does not serve ${version?.name}` }];
    return contains(served.schema, version?.schema) ? [] : [{ name, how: `has another schema of ${version?.name}` }];
  });
}
