/** Every finding of AWS's rule pack that we do not follow, with the reason. A finding without one fails the synthesis. */
import type { Acknowledgment } from 'aws-cdk-lib';

export const excuses = {
  ownAuthentication: {
    id: 'AwsSolutions-APIG4',
    reason:
      'callers show an API key, an OIDC token or a signature of the enrolled cluster key; an authorizer of the API knows none of the three (it checks RSA only), the function checks before anything else',
  },
  deadEnd: {
    id: 'AwsSolutions-SQS3',
    reason: 'this queue is where dead letters of a function, rule or schedule end; it has no consumer that could fail',
  },
  alarmsInClear: {
    id: 'AwsSolutions-SNS2',
    reason:
      'alarms carry names and numbers only; CloudWatch cannot publish through the key that AWS manages, and a key of our own costs 1 USD a month',
  },
  rotatedByHand: {
    id: 'AwsSolutions-SMG4',
    reason:
      'what is sealed names its key, and a new key is added beside the old ones (docs/deploy.md); a function that did so by itself would be the only one that may write the keyring',
  },
  publicFiles: {
    id: 'AwsSolutions-S1',
    reason: 'the bucket holds the files of the console, which anybody may read through the CDN, and nothing else',
  },
  anyCountry: {
    id: 'AwsSolutions-CFR1',
    reason: 'the console is for the members of tenants, in the countries that they are in',
  },
  noFirewall: {
    id: 'AwsSolutions-CFR2',
    reason:
      'static files, and an API that limits every tenant by itself; a web ACL costs 5 USD a month while it stands',
  },
  apiLogsItself: {
    id: 'AwsSolutions-CFR3',
    reason: 'requests to the API are in its own access log; reading a public file is no event',
  },
  sharedName: {
    id: 'AwsSolutions-CFR4',
    reason:
      'CloudFront lets TLS 1.0 in under its own name only; give the distribution a name and certificate of yours to forbid it',
  },
  accountLogRole: {
    id: 'AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]',
    reason:
      'API Gateway takes only a role with all rights of this policy for an account; no other principal can assume it',
  },
} as const satisfies Readonly<Record<string, Acknowledgment>>;

/** Resources that end in a wildcard, and why nothing narrower exists. All others are named in full. */
const wildcards: readonly { readonly resource: RegExp; readonly because: string }[] = [
  { resource: /:log-group:[^*]+:\*$/, because: 'Lambda names the streams of the function’s own log group at run time' },
  { resource: /:execute-api:[^*]+\/\*\/@connections\/\*$/, because: 'API Gateway names connections at run time' },
  {
    resource: /:iam::\*:role\/isthmus-events-\*$/,
    because:
      'roles that tenants make in their own accounts, by the name that they have to have; each asks for the external ID of its tenant',
  },
];

/** Undefined for a resource that is named in full; throws for a wildcard without a stated reason. */
export function wildcardExcuse(resource: string): Acknowledgment | undefined {
  if (!resource.includes('*')) return undefined;
  const known = wildcards.find((wildcard) => wildcard.resource.test(resource));
  if (known === undefined)
    throw new Error(`${resource}: name the resource in full, or say in infra/rules/excuses.ts why not`);
  return { id: `AwsSolutions-IAM5[Resource::${resource}]`, reason: known.because };
}
