/**
 * What a client of the key-value door may send, as any bytes. What must hold: however they are cut, the same commands come out, or
 * the same refusal at the same place; and a pattern matches in steps that its length and that of the text bound.
 */
import { respCodec, type Words } from '../../../src/doors/kv/codec.ts';
import { globOf } from '../../../src/doors/kv/glob.ts';
import { checkCuts } from '../cuts.ts';

export const name = 'resp-codec';

export function run(bytes: Uint8Array): void {
  const commands: readonly Words[] = checkCuts(respCodec, bytes);
  for (const words of commands.slice(0, 8)) {
    const [pattern = '', text = ''] = words.map((word) => word.toString('latin1', 0, 2_048));
    globOf(pattern)(text);
    globOf(text)(pattern);
  }
}

export function seeds(): Uint8Array[] {
  const texts = [
    '*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n',
    '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\na\r\nb\0\u{ff}\r\n',
    "PING\r\nSET k \"a \\x41\\n\" 'it\\'s'\r\n\r\nGET k\n",
    '*0\r\n*-1\r\n*1\r\n$0\r\n\r\n',
    '*99999999\r\n$99999999\r\n',
    `*3\r\n$${2_000}\r\n${'*a'.repeat(1_000)}\r\n$${2_000}\r\n${'a'.repeat(2_000)}\r\n$6\r\n[^a-\\]\r\n`,
    `*40\r\n${'$1\r\nx\r\n'.repeat(40)}`,
  ];
  return texts.map((text) => Buffer.from(text, 'latin1'));
}
