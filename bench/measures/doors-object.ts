/** Bodies of 64 MiB through the object door, in and out, and what a far larger one takes of memory: signed, sealed, on disk. */
import { createHash, createHmac } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { residentMb } from '../processes.ts';
import { summary } from '../report.ts';

const [key, secret] = ['bearer-of-the-bench', 'secret-of-the-bench'];
const bodyBytes = 64 << 20;
const pieceBytes = 1 << 20;

export async function objectDoor({ report, directory, repeats, port, rows }: BenchContext): Promise<void> {
  const door = port();
  const settings = {
    SERVICE_BEARER_TOKEN: key,
    SERVICE_OBJECT_SECRET_KEY: secret,
    SERVICE_OBJECT_PORT: String(door),
    SERVICE_RELATIONAL_ENABLE: 'false',
  };
  const server = await AnnalsServer.start(directory, 'objects', port(), { settings });
  try {
    await send(door, 'PUT', '/bench', 0, 0);
    const shape = { unit: 'MB/s', better: 'larger', product: 'annals' } as const;
    const rate = (ms: number): number => bodyBytes / 1_000 / ms;
    const [puts, gets]: [number[], number[]] = [[], []];
    for (let repeat = 0; repeat <= repeats; repeat++) {
      // Another body each time: the same again would not be stored again.
      const put = await send(door, 'PUT', '/bench/body', bodyBytes, repeat);
      const get = await send(door, 'GET', '/bench/body', 0, 0);
      if (get.bytes !== bodyBytes) throw new Error(`${get.bytes} bytes came back`);
      if (repeat === 0) continue;
      puts.push(put.ms);
      gets.push(get.ms);
    }
    report.add({ ...shape, measure: 'object PUT, 64 MiB', samples: puts.map(rate), note: 'one core, synced' });
    report.add({ ...shape, measure: 'object GET, 64 MiB', samples: gets.map(rate), note: 'one core' });
    report.figure('doors.object-put', summary(puts.map(rate)));
    report.figure('doors.object-get', summary(gets.map(rate)));
    const before = residentMb(server.pid).now;
    // The whole of it in a full run: a small one tells as much of the shape.
    const largeBytes = rows >= 1_000_000 ? 5 * 2 ** 30 : 2 ** 29;
    await send(door, 'PUT', '/bench/large', largeBytes, 1_000);
    await send(door, 'GET', '/bench/large', 0, 0);
    const grown = Math.max(0, residentMb(server.pid).peak - before);
    const measure = `memory that PUT and GET of ${largeBytes / 2 ** 30} GiB take`;
    report.add({ measure, product: 'annals', unit: 'MB', better: 'smaller', samples: [grown], note: 'greatest resident set' });
    report.figure('doors.object-memory', summary([grown]));
  } finally {
    await server.stop();
  }
}

/** One signed request with a body of so many bytes, and how long it took. */
function send(port: number, method: string, path: string, bytes: number, seed: number): Promise<{ ms: number; bytes: number }> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { ...signed(port, method, path), ...(method === 'PUT' && { 'content-length': String(bytes) }) };
    const request = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (response) => {
      let received = 0;
      const said: Buffer[] = [];
      response.on('data', (piece: Buffer) => {
        received += piece.length;
        if (response.statusCode! >= 300) said.push(piece);
      });
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode! >= 300) return reject(new Error(`${method} ${path}: ${Buffer.concat(said).toString()}`));
        resolve({ ms: performance.now() - began, bytes: received });
      });
    });
    request.on('error', reject);
    let left = bytes;
    const piece = Buffer.alloc(pieceBytes, seed & 255);
    const pump = (): void => {
      while (left > 0) {
        piece.writeUInt32LE(left >>> 20, 0);
        piece.writeUInt32LE(seed, 4);
        // The piece is written over once it is sent.
        const part = Buffer.from(piece.subarray(0, Math.min(left, pieceBytes)));
        left -= part.length;
        if (!request.write(part)) return void request.once('drain', pump);
      }
      request.end();
    };
    pump();
  });
}

function signed(port: number, method: string, path: string): Record<string, string> {
  const date = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const scope = `${date.slice(0, 8)}/us-east-1/s3/aws4_request`;
  const headers = { host: `127.0.0.1:${port}`, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD', 'x-amz-date': date };
  const names = Object.keys(headers).join(';');
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const canonical = [method, path, '', lines.join(''), names, 'UNSIGNED-PAYLOAD'].join('\n');
  const hmac = (by: Uint8Array, text: string): Buffer => createHmac('sha256', by).update(text).digest();
  const signingKey = scope.split('/').reduce<Uint8Array>(hmac, Buffer.from(`AWS4${secret}`));
  const said = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join('\n');
  const signature = hmac(signingKey, said).toString('hex');
  return {
    ...headers,
    authorization: `AWS4-HMAC-SHA256 Credential=${key}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}
