/** What a client of Bolt may send, as any bytes: however they are cut, the same messages come out, or the same refusal. */
import { boltCodec } from '../../../src/doors/graph/bolt-codec.ts';
import { handshakeBytes, helloBytes, map, messageBytes } from '../../doors/graph/bolt-client.ts';
import { checkCuts } from '../cuts.ts';

export const name = 'bolt-codec';

export function run(bytes: Uint8Array): void {
  checkCuts(boltCodec, bytes);
}

export function seeds(): Uint8Array[] {
  const run = messageBytes(0x10, 'MATCH (a:Thing) RETURN a.id', map({ x: 1n, y: [1.5, 'é'] }), map({ mode: 'r' }));
  const noop = Buffer.alloc(2);
  return [
    Buffer.concat([handshakeBytes(4, 4, 5), helloBytes('x'), noop, run, noop, noop, messageBytes(0x3f, map({ n: -1n }))]),
    Buffer.concat([handshakeBytes(0, 4, 4), helloBytes('x'), messageBytes(0x11, map()), run, messageBytes(0x12)]),
    Buffer.concat([handshakeBytes(0, 0, 3), messageBytes(0x02)]),
    Buffer.concat([handshakeBytes(8, 8, 5), Buffer.from('0001b10001010000', 'hex'), messageBytes(0x0f)]),
    Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
  ];
}
