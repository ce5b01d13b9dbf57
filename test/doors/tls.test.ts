/** TLS on the doors beside HTTP, by the clients that people use; who speaks in the clear on this machine goes on being answered. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { Duplex } from 'node:stream';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { credentials, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { documentsConnected } from './document/document-client.ts';
import { StoreWorld } from './http/store-world.ts';
import { kvConnected } from './kv/kv-client.ts';
import { bearer } from './object/object-client.ts';
import { connected } from './relational/relational-client.ts';
import { commandDescriptor, FlightClient } from './grpc/flight-client.ts';
import { type Channel, GrpcClient } from './grpc/grpc-client.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../fixtures/keys/${name}`, import.meta.url));
const caFile = path('localhost.cert.pem');
const ca = readFileSync(caFile, 'utf8');

const secret = 'bearer-for-tests';
const settings = {
  SERVICE_BEARER_TOKEN: secret,
  SERVICE_FLIGHT_ENABLE: 'true',
  // Another address of this machine than the one where doors listen that are for this machine alone.
  SERVICE_HTTP_BIND: '127.0.0.2',
  SERVICE_TLS_CERT: caFile,
  SERVICE_TLS_KEY: path('localhost.key.pem'),
};

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open(settings);
});
afterAll(() => world.close());

const portOf = (name: string): number => world.others.find((door) => door.name === name)!.port;

/** What each door answers a client of its own: under TLS, checking the certificate, or in the clear. */
const doors: Record<string, (secure: boolean) => Promise<unknown>> = {
  async kv(secure) {
    const client = kvConnected(world, secure ? { tls: { ca } } : {});
    try {
      await client.set('k', 'x'.repeat(300_000));
      return (await client.get('k'))?.length;
    } finally {
      client.disconnect();
    }
  },
  async document(secure) {
    const client = await documentsConnected(world, secure ? { tls: true, tlsCAFile: caFile } : {});
    try {
      const things = client.db('shop').collection('things');
      await things.updateOne({ n: 1 }, { $set: { text: 'x'.repeat(300_000) } }, { upsert: true });
      return (await things.findOne({ n: 1 }))?.['text'].length;
    } finally {
      await client.close();
    }
  },
  async relational(secure) {
    const client = await connected(world, secure ? { ssl: { ca } } : {});
    try {
      return (await client.query('SELECT $1 AS x', ['x'.repeat(300_000)])).rows[0].x.length;
    } finally {
      await client.end();
    }
  },
};

describe.each(Object.entries(doors))('the %s door', (name, ask) => {
  test('speaks TLS to a client that checks its certificate', async () => {
    expect(await ask(true)).toBe(300_000);
  });

  test('goes on speaking in the clear to a client on this machine', async () => {
    expect(await ask(false)).toBe(300_000);
  });

  test('needs version 1.2 at least', async () => {
    const speak = async (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<string> => {
      const socket = await secured({ port: portOf(name), minVersion: version, maxVersion: version, ciphers: 'ALL:@SECLEVEL=0' });
      const protocol = socket?.getProtocol() ?? 'refused';
      socket?.destroy();
      return protocol;
    };
    expect([await speak('TLSv1.1'), await speak('TLSv1.2'), await speak('TLSv1.3')]).toEqual(['refused', 'TLSv1.2', 'TLSv1.3']);
  });
});

test('a handshake may come byte by byte', async () => {
  const outer = connectPlain(portOf('kv'), '127.0.0.1');
  outer.setNoDelay(true);
  await once(outer, 'connect');
  const write = outer._write.bind(outer);
  outer._write = (bytes: Buffer, encoding, done) => {
    const next = (at: number): void => {
      if (at >= 5 || at >= bytes.length) return write(bytes.subarray(at), encoding, done);
      write(bytes.subarray(at, at + 1), encoding, () => setTimeout(next, 5, at + 1));
    };
    next(0);
  };
  const cut = Duplex.from({ writable: outer, readable: outer });
  const socket = await secured({ socket: cut });
  socket!.write('PING\r\n');
  expect(String((await once(socket!, 'data'))[0])).toContain('NOAUTH');
  socket!.destroy();
  outer.destroy();
});

test('bytes that only begin as a handshake does are the protocol’s', async () => {
  const socket = connectPlain(portOf('kv'), '127.0.0.1');
  socket.write(Buffer.from([0x16]));
  await new Promise((resolve) => setTimeout(resolve, 20));
  socket.write('x\r\n');
  expect(String((await once(socket, 'data'))[0])).toMatch(/^-(NOAUTH|ERR)/);
  socket.destroy();
});

test('the object door speaks nothing else', async () => {
  const ask = (protocol: string): Promise<number | string> =>
    new Promise((resolve) => {
      if (protocol === 'http')
        return void fetch(`http://127.0.0.1:${portOf('object')}/`).then(
          ({ status }) => resolve(status),
          () => resolve('refused'),
        );
      get({ port: portOf('object'), host: 'localhost', ca, headers: bearer }, (response) =>
        resolve(response.resume().statusCode!),
      );
    });
  expect([await ask('https'), await ask('http')]).toEqual([200, 'refused']);
});

/** The answer to a first call: its rows, or the refusal. */
const rpc: Record<string, (of: StoreWorld, channel: Channel) => Promise<unknown>> = {
  async grpc(of, channel) {
    const client = new GrpcClient(of, {}, secret, channel);
    return client.rows('SELECT 1 AS one').finally(() => client.close());
  },
  async flight(of, channel) {
    const client = new FlightClient(of, {}, secret, channel);
    return client
      .info(commandDescriptor(Buffer.from('SELECT 1 AS one')))
      .then((info) => client.get(info.ticket))
      .then((table) => table.toArray().map((row) => ({ one: String(row.toJSON().one) })))
      .finally(() => client.close());
  },
};

describe('doors of gRPC', () => {
  const by = credentials.createSsl(Buffer.from(ca));
  const [near, far] = ['127.0.0.1', '127.0.0.2'];
  const told = (asked: Promise<unknown>): Promise<unknown> => asked.catch(({ code }: { code: number }) => status[code]);

  test.each(Object.entries(rpc))('%s speaks TLS, and nothing else, where the data listener does', async (_, ask) => {
    expect(await ask(world, { host: far, by })).toEqual([{ one: '1' }]);
    expect(await told(ask(world, { host: far }))).toBe('UNAVAILABLE');
  });

  test('speak in the clear, on this machine alone, where that is asked for', async () => {
    const clear = await StoreWorld.open({ ...settings, SERVICE_SECURITY_MODE: 'open', SERVICE_GRPC_PLAINTEXT_OK: 'true' });
    try {
      for (const ask of Object.values(rpc)) {
        expect(await ask(clear, { host: near })).toEqual([{ one: '1' }]);
        expect(await told(ask(clear, { host: far }))).toBe('UNAVAILABLE');
      }
    } finally {
      await clear.close();
    }
  });
});

async function secured(options: ConnectionOptions): Promise<TLSSocket | null> {
  const socket = connect({ host: 'localhost', ca, ...options });
  return new Promise((resolve) => {
    socket.once('secureConnect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}
