/** What an endpoint of a link looks like. */
import { parseAddress } from '#shared/domain/cidr.ts';

/** An IPv4 address and a port: no words of anybody's. */
export const isPlainEndpoint = (endpoint: string): boolean =>
  parseAddress(endpoint.slice(0, endpoint.lastIndexOf(':'))) !== undefined;
