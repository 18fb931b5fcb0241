// Carries TCP connections to 127.0.0.1:PORT of a network namespace to a UNIX socket, which every namespace sees. Arguments: port, socket.
import net from 'node:net';

const [port, path] = process.argv.slice(2);
net
  .createServer((inside) => {
    const outside = net.connect(path);
    for (const [a, b] of [
      [inside, outside],
      [outside, inside],
    ]) {
      a.on('error', () => b.destroy());
      a.pipe(b);
    }
  })
  .listen(Number(port), '127.0.0.1', () => console.log('ready'));
