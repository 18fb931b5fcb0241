/**
 * IPv4 addresses and ranges as the network kinds have them. A pattern alone, without Liqo's `format: ipv4`: of a string with a format the API
 * server takes a list as well.
 */
import * as z from 'zod';

const octet = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const address = `(${octet}\\.){3}${octet}`;

/** Host bits may be set, as in Liqo; admission refuses them where a range is meant. */
export const Cidr = z
  .string()
  .regex(new RegExp(`^${address}/(3[0-2]|[12]?[0-9])$`), 'must be an IPv4 range such as 10.0.0.0/16');
export const Ipv4 = z.string().regex(new RegExp(`^${address}$`), 'must be an IPv4 address such as 10.0.0.1');
/** Below 1280 bytes nothing that relies on IPv6's minimum works, and no known underlay needs it. */
export const Mtu = z.int().min(1280).max(65_535);
export const Port = z.int32().min(1).max(65_535);
