// Runs inside one network namespace and does traffic on request: JSON lines in, JSON lines out. Ends with its standard input.
import dgram from 'node:dgram';
import net from 'node:net';
import readline from 'node:readline';

const reply = (id, value) => process.stdout.write(`${JSON.stringify({ id, ...value })}\n`);
const received = { bytes: 0 };

/** First line of a TCP client: `who` (answer its address), `sink` (read to the end), `source N` (send N bytes). */
function serveTcp(port) {
  const server = net.createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (chunk) => {
      const text = chunk.subarray(0, 64).toString('latin1');
      const [command, argument] = text.split('\n')[0].split(' ');
      if (command === 'who') return socket.end(`${socket.remoteAddress}\n`);
      if (command === 'source') return send(socket, Number(argument));
      socket.on('data', (more) => {
        received.bytes += more.length;
      });
      socket.on('end', () => socket.end('done\n'));
    });
  });
  return new Promise((resolve, reject) => server.once('error', reject).listen(port, '0.0.0.0', () => resolve({})));
}

const block = Buffer.alloc(256 * 1024, 'x');
async function send(socket, bytes) {
  socket.setMaxListeners(0); // a waiting `close` per full buffer
  for (let left = bytes; left > 0 && !socket.destroyed; left -= block.length) {
    if (!socket.write(left < block.length ? block.subarray(0, left) : block)) {
      await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
    }
  }
  socket.end();
}

/** Answers the sender's address and the size of what came. */
function serveUdp(port) {
  const socket = dgram.createSocket('udp4');
  socket.on('message', (message, from) => {
    received.bytes += message.length;
    socket.send(JSON.stringify({ from: from.address, size: message.length }), from.port, from.address);
  });
  return new Promise((resolve) => socket.bind(port, '0.0.0.0', () => resolve({})));
}

function who({ address, port, bind, timeoutMs = 3000 }) {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: address, port, localAddress: bind });
    let text = '';
    const timer = setTimeout(
      () => socket.destroy(new Error(`no answer of ${address}:${port} in ${timeoutMs} ms`)),
      timeoutMs,
    );
    socket.on('connect', () => socket.write('who\n'));
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.on('end', () => {
      clearTimeout(timer);
      resolve({ seen: text.trim() });
    });
  });
}

/** Bytes from here to there (`up`) or back (`down`); Mbit/s of payload. Fails when nothing moves for `stallMs`. */
function transfer({ address, port, bytes, direction, bind, stallMs = 10_000 }) {
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const socket = net.connect({ host: address, port, localAddress: bind });
    let got = 0;
    let moved = 0;
    const stalled = setInterval(() => {
      const now = got + socket.bytesWritten - socket.writableLength;
      if (now === moved) socket.destroy(new Error(`stalled at ${now} of ${bytes} bytes`));
      moved = now;
    }, stallMs);
    socket.on('connect', () => {
      if (direction === 'down') socket.write(`source ${bytes}\n`);
      else {
        socket.write('sink\n'.padEnd(16, ' '));
        setTimeout(() => void send(socket, bytes), 20);
      }
    });
    socket.on('data', (chunk) => {
      got += chunk.length;
    });
    socket.on('error', (error) => {
      clearInterval(stalled);
      reject(error);
    });
    socket.on('end', () => {
      clearInterval(stalled);
      socket.destroy();
      const seconds = (performance.now() - started) / 1000;
      if (direction === 'down' && got !== bytes) return reject(new Error(`${got} of ${bytes} bytes came`));
      resolve({ seconds, mbitPerSecond: (bytes * 8) / 1e6 / seconds });
    });
  });
}

/** One datagram, and its answer if one comes in time. `hex` is sent as it is, else `size` bytes. */
function udp({ address, port, size = 16, hex, bind, timeoutMs = 5000 }) {
  return new Promise((resolve, reject) => {
    const socket = dgram.createSocket('udp4');
    const finish = (value) => {
      clearTimeout(timer);
      socket.close();
      resolve(value);
    };
    const timer = setTimeout(() => finish({ answered: false }), timeoutMs);
    socket.on('message', (message) => finish({ answered: true, ...JSON.parse(message.toString()) }));
    socket.on('error', (error) => {
      clearTimeout(timer);
      socket.close();
      reject(error);
    });
    const payload = hex === undefined ? Buffer.alloc(size, 'u') : Buffer.from(hex, 'hex');
    socket.bind(0, bind, () => socket.send(payload, port, address));
  });
}

/** A datagram every `everyMs`; answers are counted, and the longest time without one. */
function stream({ address, port, everyMs, forMs }) {
  return new Promise((resolve) => {
    const socket = dgram.createSocket('udp4');
    let [sent, answered, longestGapMs, answeredAfterGap, last] = [0, 0, 0, 0, performance.now()];
    const note = () => {
      const gapMs = performance.now() - last;
      last += gapMs;
      if (gapMs < longestGapMs) return;
      longestGapMs = gapMs;
      answeredAfterGap = 0;
    };
    socket.on('error', () => undefined);
    socket.on('message', () => {
      note();
      answered += 1;
      answeredAfterGap += 1;
    });
    const timer = setInterval(() => {
      sent += 1;
      socket.send('x', port, address);
    }, everyMs);
    setTimeout(() => {
      clearInterval(timer);
      setTimeout(() => {
        note();
        socket.close();
        resolve({ sent, answered, longestGapMs, answeredAfterGap });
      }, 200);
    }, forMs);
  });
}

/** Whether a TCP connection is taken; silence counts as no. */
function isOpen(address, port, timeoutMs) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: address, port });
    const finish = (open) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(open);
    };
    const timer = setTimeout(() => finish(false), timeoutMs);
    socket.once('connect', () => finish(true)).once('error', () => finish(false));
  });
}

/** Those of `ports` that take a connection. */
async function scan({ address, ports, timeoutMs = 1500, atOnce = 2000 }) {
  const open = [];
  let next = 0;
  const walk = async () => {
    while (next < ports.length) {
      const port = ports[next++];
      if (await isOpen(address, port, timeoutMs)) open.push(port);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, walk));
  return { open: open.sort((a, b) => a - b) };
}

const operations = {
  serveTcp: ({ port }) => serveTcp(port),
  serveUdp: ({ port }) => serveUdp(port),
  received: () => ({ ...received }),
  who,
  transfer,
  udp,
  stream,
  scan,
};

readline
  .createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, operation, ...parameters } = JSON.parse(line);
    Promise.resolve()
      .then(() => operations[operation](parameters))
      .then((value) => reply(id, { value }))
      .catch((error) => reply(id, { error: error.code ? `${error.code} ${error.message}` : error.message }));
  })
  .on('close', () => process.exit(0));
reply(0, { value: 'ready' });
