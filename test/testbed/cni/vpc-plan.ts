/** Addresses of a cluster whose nodes are instances in a VPC: pods have addresses of the subnet in which the nodes are. Pure. */

/** What EC2 calls a network interface; `secondary` is for pods. */
interface VpcInterface {
  readonly name: 'eth0' | 'eth1';
  readonly address: string;
  readonly secondary: readonly string[];
}

export interface VpcNode {
  /** Its address in the VPC. Nothing on the node knows the one by which the internet reaches it. */
  readonly ip: string;
  /** The primary one first. */
  readonly interfaces: readonly VpcInterface[];
}

export interface VpcPlan {
  /** A /24: the first of the VPC's range. */
  readonly subnet: string;
  /** The VPC's router, the first address of the subnet as everywhere at AWS. */
  readonly gateway: string;
}

/** Pods for which the primary interface has addresses, as few as that of a small instance; further ones are at the second interface. */
const atPrimary = 3;
const podsPerNode = 62;

const hostIn = (vpc: string, host: number): string => vpc.replace(/\d+\/\d+$/, String(host));

export const vpcPlan = (vpc: string): VpcPlan => ({ subnet: `${hostIn(vpc, 0)}/24`, gateway: hostIn(vpc, 1) });

/** `number`: 0 to 2. */
export function vpcNode(vpc: string, number: number): VpcNode {
  const secondary = Array.from({ length: podsPerNode }, (_, pod) => hostIn(vpc, 64 + number * 64 + pod));
  const ip = hostIn(vpc, 11 + number);
  return {
    ip,
    interfaces: [
      { name: 'eth0', address: ip, secondary: secondary.slice(0, atPrimary) },
      { name: 'eth1', address: hostIn(vpc, 21 + number), secondary: secondary.slice(atPrimary) },
    ],
  };
}
