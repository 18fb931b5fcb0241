// Answers pings as Liqo's gateway does: reads 1024 bytes, echoes the object with msgType PONG, for every ID. Argument: port.
import dgram from 'node:dgram';

const socket = dgram.createSocket('udp4');
socket.on('message', (datagram, from) => {
  let message;
  try {
    message = JSON.parse(datagram.subarray(0, 1024).toString());
  } catch {
    return;
  }
  if (message.msgType !== 'PING') return;
  socket.send(JSON.stringify({ ...message, msgType: 'PONG' }), from.port, from.address);
});
socket.bind(Number(process.argv[2]), '0.0.0.0', () => console.log('ready'));
