/** Forged overlay packets: what an attacker sends to UDP 6091 to get a packet delivered as if it came from a peer. */
import { macOf } from '#agent/network/kernel/overlay.ts';
import { parseAddress } from '#shared/domain/cidr.ts';

export interface Forged {
  readonly vni: number;
  /** Overlay address of the receiver, whose device must take the frame. */
  readonly to: string;
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  readonly payload: string;
}

const mac = (text: string): Buffer => Buffer.from(text.replaceAll(':', ''), 'hex');

/** The UDP payload, hexadecimal. */
export function forge({ vni, to, source, destination, port, payload }: Forged): string {
  const data = Buffer.from(payload);
  const vxlan = Buffer.alloc(8);
  vxlan.writeUInt8(8, 0);
  vxlan.writeUIntBE(vni, 4, 3);
  const ethernet = Buffer.concat([mac(macOf(to)), mac('02:00:00:00:00:01'), Buffer.from([8, 0])]);
  const ip = Buffer.alloc(20);
  ip.writeUInt8(0x45, 0);
  ip.writeUInt16BE(20 + 8 + data.length, 2);
  ip.writeUInt8(64, 8);
  ip.writeUInt8(17, 9);
  ip.writeUInt32BE(Number(parseAddress(source)), 12);
  ip.writeUInt32BE(Number(parseAddress(destination)), 16);
  ip.writeUInt16BE(checksum(ip), 10);
  const udp = Buffer.alloc(8); // checksum 0: none
  udp.writeUInt16BE(40_000, 0);
  udp.writeUInt16BE(port, 2);
  udp.writeUInt16BE(8 + data.length, 4);
  return Buffer.concat([vxlan, ethernet, ip, udp, data]).toString('hex');
}

function checksum(header: Buffer): number {
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}
