/** The oldest Kubernetes 1.x that is supported: from it on, scheduling gates and `matchConditions` of webhooks are always there. */
export const oldestMinor = 30;
export const oldestKubernetes = `1.${oldestMinor}`;
