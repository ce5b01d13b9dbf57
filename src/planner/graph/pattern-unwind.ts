/** UNWIND of a graph pattern: each row as often as its list has elements, in their order. A value that is no list is a list of itself. */
import { assert } from '../../errors.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { elements } from '../expressions/functions/json.ts';
import type { Opening } from '../calls/table-function.ts';
import { RowSink } from '../operators/column-sink.ts';
import { type Batch, emptyBatch, type Operator, type Pieces, PiecesOperator } from '../operators/operator.ts';
import { unwindName } from './pattern-columns.ts';
import { patternFunction } from './inner-pattern-function.ts';

const outputRows = 1_024;

export const unwind = patternFunction(unwindName, 'elements of lists', (opening) => new UnwindOperator(opening));

class UnwindOperator extends PiecesOperator {
  readonly #input: Operator;
  readonly #types: readonly ColumnType[];

  constructor({ input, node }: Opening) {
    super();
    assert(input !== null, 'lists stand in rows');
    this.#input = input;
    this.#types = node.input!.columns.map(({ type }) => type);
  }

  close(): void {
    this.#input.close();
  }

  protected *pieces(): Pieces {
    const types = this.#types;
    const list = types.length - 1;
    for (let batch = this.#input.next(); batch !== null; batch = this.#input.next()) {
      let rows: number[] = [];
      let values = new VectorBuilder('json');
      const unwound = (): Batch => {
        const sink = new RowSink(types);
        sink.append({ columns: batch!.columns, selection: Int32Array.from(rows), first: 0, count: rows.length });
        const unwound = { columns: [...sink.vectors(), values.build()], selection: null, first: 0, count: rows.length };
        rows = [];
        values = new VectorBuilder('json');
        return unwound;
      };
      for (let k = 0; k < batch.count; k++) {
        const row = batch.selection === null ? batch.first + k : batch.selection[k]!;
        const json = cellAt(batch.columns[list]!, 'json', row);
        if (json === null || json === 'null') continue;
        const text = String(json);
        for (const value of text.trimStart().startsWith('[') ? elements(text) : [text]) {
          rows.push(row);
          values.append(value);
          if (rows.length === outputRows) yield unwound();
        }
      }
      yield rows.length === 0 ? emptyBatch : unwound();
    }
  }
}
