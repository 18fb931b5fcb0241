/** Reads what strangers name: a resource, a label or a namespace may be called `constructor`, which every object inherits. Clients in Go send `null` for what is not set. */
export const ownMember = <T>(members: Readonly<Record<string, T>> | null | undefined, name: string): T | undefined =>
  members && Object.hasOwn(members, name) ? members[name] : undefined;
