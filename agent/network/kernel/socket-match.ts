/** Whether the kernel can tell packets of an open connection by the socket that they are for (Linux 5.10 or newer, module nft_socket). */
import type { Commands } from './commands.ts';

/** TCP of an open connection that ends here: not what opens one, and not for a listener. */
export const ofOpenConnection = 'tcp flags & (fin | syn | rst | ack) != syn socket wildcard 0';

const trial = `table ip isthmus-trial {
  chain trial {
    type filter hook prerouting priority mangle; policy accept;
    ${ofOpenConnection} accept
  }
}
`;

/** Asks without changing anything. */
export async function matchesSockets(commands: Pick<Commands, 'run' | 'file'>): Promise<boolean> {
  const { code } = await commands.run('nft', ['-c', '-f', await commands.file('trial', trial)]);
  return code === 0;
}
