/** One command's conversation with the broker: opened with the login, closed on every path. */
import type { CliIo } from '#cli/output/io.ts';
import { type BrokerClient, openBroker } from './broker-client.ts';

export async function withBroker<T>(io: CliIo, work: (broker: BrokerClient) => Promise<T>): Promise<T> {
  const broker = await openBroker(io);
  try {
    return await work(broker);
  } finally {
    broker.close();
  }
}
