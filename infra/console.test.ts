/** The hosted console, offline: its files are for the CDN alone, its headers are those of the local broker, the API is under its own name. */
import { beforeAll, expect, test } from 'vitest';
import { securityHeaders } from '#functions/local/console-files.ts';
import { type SynthesisedStage, synthesise } from './testing/synthesised.ts';
import { ofType, properties } from './testing/templates.ts';

let all: Readonly<Record<string, SynthesisedStage>>;
beforeAll(() => {
  all = synthesise();
}, 120_000);
const one = (type: string, stage = 'production') => {
  const [found, ...more] = ofType(type, all[stage] ?? expect.fail(stage)).map(properties);
  expect(more).toEqual([]);
  return found ?? expect.fail(type);
};

test('only the CDN reads the bucket, over TLS, and no part of it is public', () => {
  expect(one('AWS::S3::Bucket').PublicAccessBlockConfiguration).toEqual({
    BlockPublicAcls: true,
    BlockPublicPolicy: true,
    IgnorePublicAcls: true,
    RestrictPublicBuckets: true,
  });
  const { Statement } = one('AWS::S3::BucketPolicy').PolicyDocument as {
    Statement: { Effect: string; Action: unknown; Principal: unknown; Condition: unknown }[];
  };
  const allowed = Statement.filter(({ Effect }) => Effect === 'Allow');
  expect(allowed).toEqual([
    expect.objectContaining({ Action: 's3:GetObject', Principal: { Service: 'cloudfront.amazonaws.com' } }),
  ]);
  expect(JSON.stringify(allowed)).toContain('AWS:SourceArn');
  expect(JSON.stringify(Statement)).toContain('"aws:SecureTransport":"false"');
});

test('each file comes with the headers that a broker of your own sends', () => {
  const { ResponseHeadersPolicyConfig } = one('AWS::CloudFront::ResponseHeadersPolicy') as {
    ResponseHeadersPolicyConfig: {
      SecurityHeadersConfig: Record<string, Record<string, unknown>>;
      CustomHeadersConfig: { Items: { Header: string; Value: string }[] };
    };
  };
  const { SecurityHeadersConfig: own, CustomHeadersConfig: others } = ResponseHeadersPolicyConfig;
  const sent = {
    'content-security-policy': own.ContentSecurityPolicy?.ContentSecurityPolicy,
    'referrer-policy': own.ReferrerPolicy?.ReferrerPolicy,
    'strict-transport-security': `max-age=${own.StrictTransportSecurity?.AccessControlMaxAgeSec}`,
    'x-content-type-options': own.ContentTypeOptions && 'nosniff',
    'x-frame-options': own.FrameOptions?.FrameOption,
    ...Object.fromEntries(others.Items.map(({ Header, Value }) => [Header, Value])),
  };
  expect(sent).toEqual(securityHeaders);
});

test('the page may ask the identity providers of its stage, and no other origin', () => {
  const policyOf = (stage: string): string =>
    JSON.stringify(one('AWS::CloudFront::ResponseHeadersPolicy', stage).ResponseHeadersPolicyConfig);
  expect(policyOf('everything')).toContain("connect-src 'self' https://id.example.com;");
  expect(policyOf('production')).toContain("connect-src 'self';");
});

test('the page and the API are one origin; answers of the API are never kept', () => {
  const { DistributionConfig } = one('AWS::CloudFront::Distribution') as {
    DistributionConfig: {
      DefaultRootObject: string;
      CacheBehaviors: Record<string, unknown>[];
      Origins: Record<string, unknown>[];
    };
  };
  expect(DistributionConfig.DefaultRootObject).toBe('index.html');
  expect(DistributionConfig.CacheBehaviors).toEqual([
    expect.objectContaining({
      PathPattern: '/v1/*',
      ViewerProtocolPolicy: 'https-only',
      AllowedMethods: expect.arrayContaining(['GET', 'POST', 'PATCH', 'DELETE']),
      // AWS's own policies: caching disabled; everything but the host is passed on.
      CachePolicyId: '4135ea2d-6df8-44a3-9df3-4b5a84be39ad',
      OriginRequestPolicyId: 'b689b0a8-53d0-40ab-baf2-68738e2966ac',
    }),
  ]);
  expect(JSON.stringify(DistributionConfig.Origins)).toContain('execute-api');
});

test('with a name of its own, the API is reached by it: the generated one is closed', () => {
  const { DistributionConfig } = one('AWS::CloudFront::Distribution', 'everything') as {
    DistributionConfig: { Origins: Record<string, unknown>[] };
  };
  expect(JSON.stringify(DistributionConfig.Origins)).toContain('broker.example.com');
});
