/** Reads what strangers name: a resource, a label or a namespace may be called `constructor`, which every object inherits. */
export const ownMember = <T>(members: Readonly<Record<string, T>> | undefined, name: string): T | undefined =>
  members !== undefined && Object.hasOwn(members, name) ? members[name] : undefined;
