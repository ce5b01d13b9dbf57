/** A million rows out of the native columnar door, beside the same question by `/query/arrow`: the server on one core, its reader on the other. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { blockBytes, helloBytes, queryBytes, varint } from '../../test/doors/columnar/native-client.ts';
import { AnnalsServer } from '../annals-server.ts';
import type { BenchContext } from '../context.ts';
import { quotient } from '../report.ts';
import { orderColumns, orderJson, orders } from '../workload.ts';

const secret = 'bearer-of-the-bench';
/** The last of an empty block, the end of the answer, and the Pong. */
const endAndPong = Buffer.from('ffffffff0000000504', 'hex');

interface Passage {
  readonly bytes: number;
  readonly ms: number;
}

export async function nativeDoor({ report, directory, rows, repeats, port }: BenchContext): Promise<void> {
  const count = Math.min(rows, 1_000_000);
  const native = port();
  const settings = {
    SERVICE_BEARER_TOKEN: secret,
    SERVICE_COLUMNAR_NATIVE_PORT: String(native),
    SERVICE_OBJECT_ENABLE: 'false',
    SERVICE_RELATIONAL_ENABLE: 'false',
  };
  const server = await AnnalsServer.start(directory, 'native', port(), { settings });
  const agent = new Agent({ keepAlive: true });
  try {
    await server.registerOrders();
    await server.ingest('Purchase', orders(0, count, orderJson), count);
    const sql = `SELECT ${orderColumns.join(', ')} FROM Purchase AS OF CURRENT`;
    const socket = connect(native, '127.0.0.1');
    socket.write(helloBytes({ password: secret }));
    await once(socket, 'data');
    const ways = [
      { name: 'native-plain', measure: 'native blocks', ask: () => asked(socket, sql, false) },
      { name: 'native-lz4', measure: 'native blocks, LZ4', ask: () => asked(socket, sql, true) },
      { name: 'arrow', measure: '/query/arrow', ask: () => arrow(server, agent, sql) },
    ] as const;
    const found = new Map<string, number[]>(ways.map(({ name }) => [name, []]));
    const sizes = new Map<string, number>();
    // Once more than is measured: none of them is cold.
    for (let repeat = 0; repeat <= repeats; repeat++)
      for (const { name, ask } of ways) {
        const { bytes, ms } = await ask();
        sizes.set(name, bytes);
        if (repeat > 0) found.get(name)!.push((count * 1_000) / ms);
      }
    socket.destroy();
    for (const { name, measure } of ways) {
      const note = `${(sizes.get(name)! / 1e6).toFixed(0)} MB, question included`;
      report.add({
        unit: 'rows/s',
        better: 'larger',
        measure: `${count.toLocaleString('en')} rows out, ${measure}`,
        product: 'annals',
        samples: found.get(name)!,
        note,
      });
    }
    for (const name of ['native-plain', 'native-lz4'] as const)
      report.figure(`doors.${name}`, quotient(found.get(name)!, found.get('arrow')!));
  } finally {
    agent.destroy();
    await server.stop();
  }
}

/** A Ping is sent behind the question: what is answered ends with the end of the answer and the Pong. */
function asked(socket: Socket, sql: string, compressed: boolean): Promise<Passage> {
  const began = performance.now();
  return new Promise((resolve) => {
    let bytes = 0;
    let tail: Buffer = Buffer.alloc(0);
    const take = (piece: Buffer): void => {
      bytes += piece.length;
      tail = Buffer.concat([tail, piece.subarray(-endAndPong.length)]).subarray(-endAndPong.length);
      if (!tail.equals(endAndPong)) return;
      socket.off('data', take);
      resolve({ bytes, ms: performance.now() - began });
    };
    socket.on('data', take);
    socket.write(Buffer.concat([queryBytes(sql, {}, { compressed }), blockBytes(compressed), varint(4)]));
  });
}

function arrow(server: AnnalsServer, agent: Agent, sql: string): Promise<Passage> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { ...server.headers, 'content-type': 'application/json' };
    const sent = request({ host: '127.0.0.1', port: server.port, path: '/query/arrow', method: 'POST', headers, agent });
    sent.once('error', reject).once('response', (response) => {
      let bytes = 0;
      response.on('data', (piece: Buffer) => (bytes += piece.length));
      response.once('end', () => resolve({ bytes, ms: performance.now() - began }));
    });
    sent.end(JSON.stringify({ sql }));
  });
}
