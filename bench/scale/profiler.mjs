// Records a CPU profile through the inspector of a Node.js process in whose network namespace this runs, until its standard input ends.
// usage: node profiler.mjs FILE
import { writeFileSync } from 'node:fs';
import WebSocket from 'ws';

const [file] = process.argv.slice(2);
const [target] = await (await fetch('http://127.0.0.1:9229/json/list')).json();
const socket = new WebSocket(target.webSocketDebuggerUrl, { maxPayload: 1 << 30 });
await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
let serial = 0;
const call = (method, params = {}) =>
  new Promise((resolve) => {
    const id = ++serial;
    const hear = (data) => {
      const message = JSON.parse(data.toString());
      if (message.id !== id) return;
      socket.off('message', hear);
      resolve(message.result);
    };
    socket.on('message', hear);
    socket.send(JSON.stringify({ id, method, params }));
  });
await call('Profiler.enable');
await call('Profiler.setSamplingInterval', { interval: 500 });
await call('Profiler.start');
process.stdout.write('started\n');
await new Promise((resolve) => process.stdin.resume().once('end', resolve));
writeFileSync(file, JSON.stringify((await call('Profiler.stop')).profile));
process.exit(0);
