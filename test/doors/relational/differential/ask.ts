/** Puts cases to one server, many in one round trip, and reads what each came to. */
import { cellsOf, framed } from '../frames.ts';
import { describe, execute, type RawClient, sync } from '../raw-client.ts';
import { bytesOf, type Case, int32, oids } from './cases.ts';
import { families, valueOf } from './cells.ts';
import type { Outcome } from './explained.ts';

export function shown({ error, columns, rows }: Outcome): string {
  return error ?? `${columns.join()} ${JSON.stringify(rows)}`;
}

export function isSame(a: Outcome, b: Outcome): boolean {
  return shown(a) === shown(b);
}

function int16(value: number): Buffer {
  return Buffer.from([(value >> 8) & 255, value & 255]);
}

function messagesOf({ sql, parameters, isResultBinary }: Case): Buffer[] {
  const types = parameters.map(({ type, isStated }) => int32(isStated ? oids[type] : 0));
  const formats = parameters.map(({ isBinary }) => int16(isBinary ? 1 : 0));
  const cells = parameters.map((each) => {
    const bytes = bytesOf(each);
    return bytes === null ? int32(-1) : Buffer.concat([int32(bytes.length), bytes]);
  });
  const bound = [int16(formats.length), ...formats, int16(cells.length), ...cells, int16(1), int16(isResultBinary ? 1 : 0)];
  return [
    framed('P', Buffer.concat([Buffer.from(`\0${sql}\0`), int16(types.length), ...types])),
    framed('B', Buffer.concat([Buffer.from('\0\0'), ...bound])),
    describe('P'),
    execute(),
    sync,
  ];
}

export async function outcomes(client: RawClient, cases: readonly Case[]): Promise<Outcome[]> {
  client.socket.write(Buffer.concat(cases.flatMap(messagesOf)));
  const found: Outcome[] = [];
  for (const { sql, isResultBinary } of cases) {
    const replies = await client.until('Z');
    const error = replies.find(({ type }) => type === 'E');
    const fields = replies.find(({ type }) => type === 'T');
    if (error !== undefined || fields === undefined) {
      const state = error === undefined ? 'nothing' : /\0C([0-9A-Z]{5})\0/.exec(error.body.toString('latin1'))![1]!;
      found.push({ error: state, columns: [], rows: [] });
      continue;
    }
    const types = typesOf(fields.body);
    const rows = replies.flatMap(({ type, body }) =>
      type === 'D' ? [cellsOf(body).map((cell, i) => (cell === null ? null : valueOf(cell, types[i]!, isResultBinary)))] : [],
    );
    // Rows that were written come in no order.
    if (sql.includes('RETURNING')) rows.sort((a, b) => (String(a) < String(b) ? -1 : 1));
    found.push({ error: null, columns: types.map((oid) => families[oid] ?? String(oid)), rows });
  }
  return found;
}

function typesOf(body: Buffer): number[] {
  const types: number[] = [];
  let at = 2;
  for (let i = 0; i < body.readInt16BE(0); i++) {
    at = body.indexOf(0, at) + 1;
    types.push(body.readInt32BE(at + 6));
    at += 18;
  }
  return types;
}

export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
