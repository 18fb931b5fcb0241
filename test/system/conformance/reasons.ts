/** Why specs of Kubernetes' own suite fail on a virtual node, or are not run there. `npm run conformance` refuses reasons that are not true any more. */
import type { Reason } from './report.ts';

export const reasons: readonly Reason[] = [];
