/** IPv4 addresses and ranges as the network kinds have them: pattern and Go's own format, so that zod and the API server agree on every text. */
import * as z from 'zod';

const octet = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const address = `(${octet}\\.){3}${octet}`;

/** Host bits may be set, as in Liqo; admission refuses them where a range is meant. */
export const Cidr = z
  .string()
  .regex(new RegExp(`^${address}/(3[0-2]|[12]?[0-9])$`), 'must be an IPv4 range such as 10.0.0.0/16')
  .meta({ format: 'cidr' });
export const Ipv4 = z
  .string()
  .regex(new RegExp(`^${address}$`), 'must be an IPv4 address such as 10.0.0.1')
  .meta({ format: 'ipv4' });
/** Below 1280 bytes nothing that relies on IPv6's minimum works, and no known underlay needs it. */
export const Mtu = z.int().min(1280).max(65_535);
export const Port = z.int32().min(1).max(65_535);
