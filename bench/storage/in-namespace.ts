/** Prints a line of JSON for each copy, as often as the argument says. Its loopback is the link: the caller made a network namespace for it. */
import { Movers } from '#test/harness/movers.ts';
import { port, sample } from './copies.ts';

const movers = await Movers.start(port);
try {
  for (let i = 0; i < Number(process.argv[2]); i++) process.stdout.write(`${JSON.stringify(await sample(movers))}\n`);
} finally {
  movers.close();
}
