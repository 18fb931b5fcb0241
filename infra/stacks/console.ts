/**
 * The console: its files in a bucket that only the CDN reads, and the REST API under the same name, so that the page asks its own origin alone. The
 * files are uploaded apart (docs/deploy.md): a release of them touches no function.
 */
import { Aws, CfnOutput, Duration, RemovalPolicy, Stack, type StackProps, Validations } from 'aws-cdk-lib';
import {
  AllowedMethods,
  CachePolicy,
  Distribution,
  HeadersFrameOption,
  HeadersReferrerPolicy,
  HttpVersion,
  OriginRequestPolicy,
  PriceClass,
  ResponseHeadersPolicy,
  ViewerProtocolPolicy,
} from 'aws-cdk-lib/aws-cloudfront';
import { HttpOrigin, S3BucketOrigin } from 'aws-cdk-lib/aws-cloudfront-origins';
import { BlockPublicAccess, Bucket, BucketEncryption, type IBucket } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';
import type { Names } from '../constructs/names.ts';
import { consoleHeaders, consolePolicy, strictTransportSeconds } from '../rules/console-headers.ts';
import { excuses } from '../rules/excuses.ts';
import type { StageSettings } from '../stages.ts';

export interface ConsoleProps extends StackProps {
  readonly httpApiId: string;
  readonly settings: StageSettings;
  readonly names: Names;
}

export class ConsoleStack extends Stack {
  constructor(scope: Construct, id: string, { httpApiId, settings, names, ...props }: ConsoleProps) {
    super(scope, id, props);
    const files = new Bucket(this, 'Files', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      encryption: BucketEncryption.S3_MANAGED,
      enforceSSL: true,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    Validations.of(files).acknowledge(excuses.publicFiles);
    const headers = new ResponseHeadersPolicy(this, 'Headers', {
      responseHeadersPolicyName: names.of('console'),
      securityHeadersBehavior: {
        contentSecurityPolicy: { contentSecurityPolicy: consolePolicy(settings.consoleIssuers), override: true },
        contentTypeOptions: { override: true },
        frameOptions: { frameOption: HeadersFrameOption.DENY, override: true },
        referrerPolicy: { referrerPolicy: HeadersReferrerPolicy.NO_REFERRER, override: true },
        strictTransportSecurity: { accessControlMaxAge: Duration.seconds(strictTransportSeconds), override: true },
      },
      customHeadersBehavior: {
        customHeaders: Object.entries(consoleHeaders).map(([header, value]) => ({ header, value, override: true })),
      },
    });
    const api = settings.domain?.api ?? `${httpApiId}.execute-api.${Aws.REGION}.${Aws.URL_SUFFIX}`;
    const cdn = new Distribution(this, 'Cdn', {
      comment: `Isthmus console, stage ${settings.name}`,
      defaultRootObject: 'index.html',
      httpVersion: HttpVersion.HTTP2_AND_3,
      priceClass: PriceClass.PRICE_CLASS_100,
      defaultBehavior: {
        origin: S3BucketOrigin.withOriginAccessControl(files as IBucket),
        viewerProtocolPolicy: ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
        cachePolicy: CachePolicy.CACHING_OPTIMIZED,
        responseHeadersPolicy: headers,
      },
      additionalBehaviors: {
        '/v1/*': {
          origin: new HttpOrigin(api),
          viewerProtocolPolicy: ViewerProtocolPolicy.HTTPS_ONLY,
          allowedMethods: AllowedMethods.ALLOW_ALL,
          cachePolicy: CachePolicy.CACHING_DISABLED,
          // The API has to see its own name as the host, and everything else as the browser sent it.
          originRequestPolicy: OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
        },
      },
    });
    Validations.of(cdn).acknowledge(excuses.anyCountry, excuses.noFirewall, excuses.apiLogsItself, excuses.sharedName);
    new CfnOutput(this, 'ConsoleUrl', { value: `https://${cdn.distributionDomainName}/` });
    new CfnOutput(this, 'ConsoleBucket', { value: files.bucketName });
  }
}
