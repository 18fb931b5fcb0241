/** On everything that `join` and `install` apply. */
export const installLabel = { 'app.kubernetes.io/part-of': 'isthmus' } as const;
