/**
 * A yardstick: what this machine's event loop does where nothing is asked. Answers every POST with the same bytes, over
 * `node:net` with the least of a parser or over `node:http`. Arguments: which of them, the port, the bytes of a body.
 */
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';

const [kind, port, bodyBytes] = process.argv.slice(2);
const body = 'x'.repeat(Number(bodyBytes));
const type = 'application/json; charset=utf-8';

if (kind === 'http') {
  createHttpServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, ['content-type', type, 'content-length', String(body.length)]);
      response.end(body, 'latin1');
    });
  }).listen(Number(port), '127.0.0.1');
} else {
  const reply = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  createServer((socket) => {
    let read: Buffer | null = null;
    socket.setNoDelay(true).on('error', () => socket.destroy());
    socket.on('data', (bytes: Buffer) => {
      read = read === null ? bytes : Buffer.concat([read, bytes]);
      const head = read.indexOf('\r\n\r\n');
      const length = head < 0 ? null : /content-length: (\d+)/.exec(read.toString('latin1', 0, head));
      // One request at a time: its sender waits for the answer.
      if (length === null || read.length < head + 4 + Number(length[1])) return;
      read = null;
      socket.write(reply);
    });
  }).listen(Number(port), '127.0.0.1');
}
