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
const smallBodyBytesMax = 4_096;
const smallBodyRowsMax = 64;

export function readSmallBody(body: Uint8Array, definition: TypeDefinition | null): IngestBatch | null {
  if (body.length === 0 || body.length > smallBodyBytesMax || body[0] !== 0x7b) return null;
  if (definition === null || !isTypeSettled(definition)) return new SmallBodyReader(definition).read(body);
  const keptReader = smallBodyReaders.get(definition);
  const ingestBatch = keptReader?.read(body) ?? null;
  if (ingestBatch !== null) return ingestBatch;
  // A reader that learnt another order of names, or a refused row, does not help this client.
  const smallBodyReader = new SmallBodyReader(definition);
  const firstBatch = smallBodyReader.read(body);
  if (firstBatch !== null) smallBodyReaders.set(definition, smallBodyReader);
  return firstBatch;
}

const smallBodyReaders = new WeakMap<TypeDefinition, SmallBodyReader>();

const settledTypes = new WeakMap<TypeDefinition, boolean>();

function isTypeSettled(definition: TypeDefinition): boolean {
  let isKnownSettled = settledTypes.get(definition);
  if (isKnownSettled === undefined) {
    isKnownSettled = !definition.open && Object.values(definition.properties).every(({ type }) => type !== 'vector');
    settledTypes.set(definition, isKnownSettled);
  }
  return isKnownSettled;
}

class SmallBodyReader {
  readonly #smallTape = new RowTape();
  readonly #smallColumns: ColumnSet;
  readonly #smallJsonReader: JsonReader;
  readonly #smallWindow = new Uint8Array(smallBodyBytesMax + 1);
  /** Columns of the first row of a body, in its order. */
  #firstRowSlots: number[] = [];

  constructor(definition: TypeDefinition | null) {
    // Mostly there is one row, and columns of one cell need no more memory than that.
    this.#smallColumns = new ColumnSet(definition, this.#smallTape, false, 1);
    this.#smallJsonReader = new JsonReader(this.#smallColumns, this.#smallTape);
  }

  read(smallBody: Uint8Array): IngestBatch | null {
    const smallWindow = this.#smallWindow;
    smallWindow.set(smallBody);
    let smallBodyEnd = smallBody.length;
    // The last line may lack its line feed.
    if (smallWindow[smallBodyEnd - 1] !== 0x0a) smallWindow[smallBodyEnd++] = 0x0a;
    const jsonReader = this.#smallJsonReader;
    jsonReader.open(smallWindow, 0, smallBodyEnd, true);
    let smallRowCount = 0;
    for (let rowStart = 0; rowStart < smallBodyEnd; ) {
      if (smallWindow[rowStart] === 0x0a) rowStart++;
      else if (smallRowCount === smallBodyRowsMax || jsonReader.readRow(rowStart) !== 'row' || !this.#takeSmallRow(smallRowCount))
        return this.#giveUpSmallBody();
      else {
        smallRowCount++;
        rowStart = jsonReader.skipSpace(jsonReader.position);
        if (rowStart >= smallBodyEnd || smallWindow[rowStart] !== 0x0a) return this.#giveUpSmallBody();
        rowStart++;
      }
      rowStart = jsonReader.skipSpace(rowStart);
    }
    return {
      rows: this.#smallColumns.take(),
      firstIndex: 0,
      indexes: null,
      rejections: [],
      endOffset: smallBody.length,
      mixed: this.#smallColumns.mixedColumns(),
    };
  }

  /** The row on the tape, where its columns stand in the order in which this body named them first. */
  #takeSmallRow(rowOrdinal: number): boolean {
    const smallTape = this.#smallTape;
    if (smallTape.problem !== null) return false;
    const firstRowSlots = this.#firstRowSlots;
    if (rowOrdinal > 0 && smallTape.count !== firstRowSlots.length) return false;
    if (rowOrdinal === 0) firstRowSlots.length = smallTape.count;
    for (let i = 0; i < smallTape.count; i++) {
      const cellSlot = smallTape.slots[i]!;
      if (rowOrdinal > 0 ? firstRowSlots[i] !== cellSlot : i > 0 && cellSlot <= firstRowSlots[i - 1]!) return false;
      firstRowSlots[i] = cellSlot;
    }
    // The first name may be that of a wrapper's rows.
    if (rowOrdinal === 0 && smallTape.count > 0 && isRowsWrapper(this.#smallColumns.names[firstRowSlots[0]!]!)) return false;
    return this.#smallColumns.commit();
  }

  /** Drops the gathered rows, and forgets columns that only a refused row named. */
  #giveUpSmallBody(): null {
    this.#smallColumns.take();
    this.#smallColumns.abandon();
    return null;
  }
}

function isRowsWrapper(name: Uint8Array): boolean {
  return name.length === 4 && name[0] === 0x72 && name[1] === 0x6f && name[2] === 0x77 && name[3] === 0x73;
}
