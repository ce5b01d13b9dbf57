/**
 * Reads a body of one or a few rows at once, as clients send it that commit each event by itself. Invariants: the batch equals
 * what `readIngest` makes of the same bytes, order of columns included (and ends where the body does). A body that `readIngest`
 * would refuse, cut or read in another form is left to it: null, with nothing changed.
 *
 * The reader of a closed type is reused: its columns have their types from the declaration alone, so one body can't influence the
 * next. Columns of an open type learn from their cells, and so may the length of a vector: those readers are made anew.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { ColumnSet } from './column-set.ts';
import type { IngestBatch } from './ingest-batch.ts';
import { JsonReader } from './json-reader.ts';
import { RowTape } from './row-tape.ts';

/** Beyond this size the general reader costs little relative to the rows. */
const bytesMax = 4_096;
const rowsMax = 64;

export function readSmallBody(body: Uint8Array, definition: TypeDefinition | null): IngestBatch | null {
  if (body.length === 0 || body.length > bytesMax || body[0] !== 0x7b) return null;
  if (definition === null || !isSettled(definition)) return new SmallBody(definition).read(body);
  const keptReader = readers.get(definition);
  const batch = keptReader?.read(body) ?? null;
  if (batch !== null) return batch;
  // A reader that learnt another order of names, or a refused row, does not help this client.
  const reader = new SmallBody(definition);
  const first = reader.read(body);
  if (first !== null) readers.set(definition, reader);
  return first;
}

const readers = new WeakMap<TypeDefinition, SmallBody>();

const settled = new WeakMap<TypeDefinition, boolean>();

function isSettled(definition: TypeDefinition): boolean {
  let known = settled.get(definition);
  if (known === undefined) {
    known = !definition.open && Object.values(definition.properties).every(({ type }) => type !== 'vector');
    settled.set(definition, known);
  }
  return known;
}

class SmallBody {
  readonly #tape = new RowTape();
  readonly #columns: ColumnSet;
  readonly #json: JsonReader;
  readonly #window = new Uint8Array(bytesMax + 1);
  /** Columns of the first row of a body, in its order. */
  #slots: number[] = [];

  constructor(definition: TypeDefinition | null) {
    // Mostly there is one row, and columns of one cell need no more memory than that.
    this.#columns = new ColumnSet(definition, this.#tape, false, 1);
    this.#json = new JsonReader(this.#columns, this.#tape);
  }

  read(body: Uint8Array): IngestBatch | null {
    const window = this.#window;
    window.set(body);
    let end = body.length;
    // The last line may lack its line feed.
    if (window[end - 1] !== 0x0a) window[end++] = 0x0a;
    const json = this.#json;
    json.open(window, 0, end, true);
    let rows = 0;
    for (let at = 0; at < end; ) {
      if (window[at] === 0x0a) at++;
      else if (rows === rowsMax || json.readRow(at) !== 'row' || !this.#take(rows)) return this.#giveUp();
      else {
        rows++;
        at = json.skipSpace(json.position);
        if (at >= end || window[at] !== 0x0a) return this.#giveUp();
        at++;
      }
      at = json.skipSpace(at);
    }
    return {
      rows: this.#columns.take(),
      firstIndex: 0,
      indexes: null,
      rejections: [],
      endOffset: body.length,
      mixed: this.#columns.mixedColumns(),
    };
  }

  /** The row on the tape, where its columns stand in the order in which this body named them first. */
  #take(row: number): boolean {
    const tape = this.#tape;
    if (tape.problem !== null) return false;
    const slots = this.#slots;
    if (row > 0 && tape.count !== slots.length) return false;
    if (row === 0) slots.length = tape.count;
    for (let i = 0; i < tape.count; i++) {
      const slot = tape.slots[i]!;
      if (row > 0 ? slots[i] !== slot : i > 0 && slot <= slots[i - 1]!) return false;
      slots[i] = slot;
    }
    // The first name may be that of a wrapper's rows.
    if (row === 0 && tape.count > 0 && isRows(this.#columns.names[slots[0]!]!)) return false;
    return this.#columns.commit();
  }

  /** Drops the gathered rows, and forgets columns that only a refused row named. */
  #giveUp(): null {
    this.#columns.take();
    this.#columns.abandon();
    return null;
  }
}

function isRows(name: Uint8Array): boolean {
  return name.length === 4 && name[0] === 0x72 && name[1] === 0x6f && name[2] === 0x77 && name[3] === 0x73;
}
