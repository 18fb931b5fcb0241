/** Of the clusters: Liqo runs in the first, Isthmus in the second. */
export const [liqoCluster, isthmusCluster] = ['rome', 'milan'] as const;
