/** Compares the rights of the processes of Isthmus and its guests with those that a run of `npm test` used. Pure. */
import type { ClusterRole } from '#shared/domain/core-kinds.ts';
import type { Place } from '#test/testbed/asked-rights.ts';

type Rules = ClusterRole['rules'];

export interface RoleRights {
  readonly role: string;
  /** Held by a ClusterRoleBinding. */
  readonly isClusterWide?: boolean;
  readonly rules: Rules;
  /** Whose requests count, whichever role granted them: a right that two roles give is used in both. Absent: those that this role granted. */
  readonly accounts?: readonly string[];
}

interface Excused {
  readonly role: string;
  /** `verb group/resource`. */
  readonly rights: readonly string[];
  readonly reason: string;
  readonly mayBeUsed?: true;
}

export interface Used {
  readonly account: string;
  readonly role: string;
  readonly right: string;
  readonly place: Place;
}

/** Rights that no request names: what the API server asks on the way to another one. */
const impliedBy: Readonly<Record<string, readonly string[]>> = {
  'bind rbac.authorization.k8s.io/clusterroles': [
    'create rbac.authorization.k8s.io/rolebindings',
    'create rbac.authorization.k8s.io/clusterrolebindings',
  ],
  'approve certificates.k8s.io/signers': [
    'patch certificates.k8s.io/certificatesigningrequests/approval',
    'update certificates.k8s.io/certificatesigningrequests/approval',
  ],
};

/** `verb group/resource` of every rule about objects. */
export const rightsOf = (rules: Rules): readonly string[] => [
  ...new Set(
    (rules ?? []).flatMap(({ apiGroups = [], resources = [], verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((what) => verbs.map((verb) => `${verb} ${group === '' ? '' : `${group}/`}${what}`)),
      ),
    ),
  ),
];

const isUsed = (right: string, used: ReadonlySet<string>): boolean =>
  used.has(right) || impliedBy[right]?.some((one) => used.has(one)) === true;

const usesOf = ({ role, accounts }: RoleRights, used: readonly Used[]): readonly Used[] =>
  used.filter((one) => accounts?.includes(one.account) ?? one.role === role);

/** Rights held in the whole cluster that were used in the system namespace and in tenant namespaces only, which come and go with a peering: RoleBindings there would do. */
export const narrowable = (roles: readonly RoleRights[], used: readonly Used[]): readonly string[] =>
  roles
    .filter(({ isClusterWide }) => isClusterWide)
    .flatMap((one) => {
      const counts = usesOf(one, used);
      return rightsOf(one.rules).flatMap((right) => {
        const places = new Set(counts.filter((use) => use.right === right).map(({ place }) => place));
        const isNarrow = places.size > 0 && !places.has('cluster') && !places.has('other');
        return isNarrow
          ? [`${one.role} may ${right} in the whole cluster: used in ${[...places].sort().join(' and ')}`]
          : [];
      });
    });

/** Every right of every role, and where it was used: `role<TAB>right<TAB>places`, or `unused`. */
export const rightsList = (roles: readonly RoleRights[], used: readonly Used[]): readonly string[] =>
  roles.flatMap((one) => {
    const counts = usesOf(one, used);
    return rightsOf(one.rules).map((right) => {
      const means = [right, ...(impliedBy[right] ?? [])];
      const places = new Set(counts.filter((use) => means.includes(use.right)).map(({ place }) => place));
      return [one.role, right, [...places].sort().join(' ') || 'unused'].join('\t');
    });
  });

/** What is wrong, one text for each right; none: every right was used, or says why not. */
export function rightsProblems(
  roles: readonly RoleRights[],
  used: readonly Used[],
  excused: readonly Excused[],
): readonly string[] {
  const problems = roles.flatMap((one) => {
    const { role, rules } = one;
    const rights = new Set(usesOf(one, used).map(({ right }) => right));
    return rightsOf(rules).flatMap((right) => {
      const excuse = excused.find((it) => it.role === role && it.rights.includes(right));
      if (!isUsed(right, rights)) return excuse === undefined ? [`${role} may ${right}, and nothing used that`] : [];
      if (excuse === undefined || excuse.mayBeUsed) return [];
      return [`${role} used its right to ${right}, which is listed as not used (${excuse.reason})`];
    });
  });
  return [...problems, ...staleExcuses(roles, excused)];
}

/** Of rights that their roles do not have. */
export const staleExcuses = (roles: readonly RoleRights[], excused: readonly Excused[]): readonly string[] =>
  excused.flatMap(({ role, rights }) => {
    const has = rightsOf(roles.find((one) => one.role === role)?.rules);
    return rights
      .filter((right) => !has.includes(right))
      .map((right) => `${role} is listed as not using its right to ${right}, and it has no such right`);
  });
