/** What callers may write where Kubernetes has a grammar of its own; the control plane checks meaning, these check form. */
import * as z from 'zod';

/** As `parseQuantity` reads it, without a sign: what is asked for or allowed is never negative. */
const Quantity = z
  .string()
  .max(40)
  .regex(
    /^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$/,
    'must be a Kubernetes quantity, for example 2, 500m or 4Gi',
  );

const qualifiedName = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

export const GivenQuantities = z
  .record(z.string().max(317).regex(qualifiedName, 'must be the name of a resource'), Quantity)
  .describe('Resource name to Kubernetes quantity.');

export const LabelValue = z
  .string()
  .regex(
    /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/,
    'must be a Kubernetes label value of at most 63 characters',
  );

const maxLabels = 32;
export const GivenLabels = z
  .record(z.string().max(317).regex(qualifiedName, 'must be a Kubernetes label name'), LabelValue)
  .refine((labels) => Object.keys(labels).length <= maxLabels, `must have at most ${maxLabels} labels`)
  .meta({ maxProperties: maxLabels });

/** Of resources: what a provider offers under a name. */
export const OneClass = z
  .string()
  .regex(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/, 'must be 1 to 63 letters, digits, -, _ and .');
