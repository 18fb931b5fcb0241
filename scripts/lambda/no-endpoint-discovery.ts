/** Stands in for `@aws-sdk/middleware-endpoint-discovery` in bundles: DynamoDB's client brings it along and no command that we send uses it. */
export const resolveEndpointDiscoveryConfig = <T>(input: T): T => input;
export const NODE_ENDPOINT_DISCOVERY_CONFIG_OPTIONS = {
  environmentVariableSelector: (): undefined => undefined,
  configFileSelector: (): undefined => undefined,
  default: undefined,
};
