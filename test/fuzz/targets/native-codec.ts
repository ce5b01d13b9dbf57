/** What a client of the native columnar door may send, as any bytes: however they are cut, the same messages come out, or the same refusal. */
import { nativeCodec } from '../../../src/doors/columnar/native-codec.ts';
import { blockBytes, helloBytes, queryBytes, text, varint } from '../../doors/columnar/native-client.ts';
import { checkCuts } from '../cuts.ts';

export const name = 'native-codec';

export function run(bytes: Uint8Array): void {
  checkCuts(nativeCodec, bytes);
}

export function seeds(): Uint8Array[] {
  const old = { revision: 54_412 };
  const packed = { ...old, compressed: true };
  const ask = 'SELECT id FROM Thing SETTINGS max_threads = 1 FORMAT Native';
  const table = Buffer.concat([varint(2), text('ext'), Buffer.from('010002ffffffff000101', 'hex'), text('a'), text('UInt8')]);
  return [
    helloBytes({ database: 'dev', user: 'a@b/c' }),
    Buffer.concat([helloBytes({}), varint(4), queryBytes(ask), blockBytes(false), varint(3), varint(6)]),
    Buffer.concat([helloBytes(old), queryBytes(ask, { settings: { max_threads: '300' } }, old), blockBytes(false), varint(3)]),
    Buffer.concat([helloBytes(packed), queryBytes(ask, { id: 'q1' }, packed), blockBytes(true), varint(4)]),
    Buffer.concat([helloBytes({}), queryBytes(ask, { settings: { annals_as_of: '2024-05-01', readonly: '1' } }), table]),
    Buffer.concat([helloBytes({}), varint(5), varint(2), ...['default', 'Thing', 'default', 'é'].map(text)]),
    Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
  ];
}
