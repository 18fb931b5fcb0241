/** The broker that `api.ts`, `fair.ts` and `slow-clients.ts` measure: says where it is on its first line, answers questions over IPC, and ends with its standard input. */
import { startBroker } from '#functions/local/broker.ts';
import { silentLog } from '#shared/ports/log.ts';
import { answerQuestions } from './inside.ts';

const [dataDir = ''] = process.argv.slice(2);
const broker = await startBroker({ dataDir, listen: '127.0.0.1:0', log: silentLog, version: 'bench' });
console.log(
  JSON.stringify({
    url: broker.url,
    key: broker.adminKey,
    operatorKey: broker.operatorKey,
    caFile: broker.caFile,
    pid: process.pid,
  }),
);
answerQuestions();
process.stdin.resume();
await new Promise((resolve) => process.stdin.once('end', resolve));
await broker.close();
process.exit(0);
