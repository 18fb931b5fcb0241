/** Ingresses: the same rules, served by the provider's class (reference 5.5). */
import { type Ingress, ingresses } from '#shared/domain/core-kinds.ts';
import { type OutgoingKind, picked, sameName, withoutStatus } from './kind.ts';

/** How the class was named before it had a field. */
const classAnnotation = 'kubernetes.io/ingress.class';

export const ingress: OutgoingKind<Ingress> = {
  name: 'ingress',
  local: ingresses,
  remote: ingresses,
  prune: withoutStatus,
  isPartial: false,
  ...sameName,
  isExcluded: () => false,
  copy: ({ spec }, { shape }) => ({
    content: {
      spec: {
        ...picked(spec, ['defaultBackend', 'rules', 'tls']),
        ...(shape.ingressClass === undefined ? {} : { ingressClassName: shape.ingressClass }),
      },
    },
    without: [classAnnotation],
  }),
  mustReplace: () => false,
};
