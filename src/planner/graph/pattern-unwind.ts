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

const unwoundOutputRows = 1_024;

export const unwind = patternFunction(unwindName, 'elements of lists', (opening) => new UnwindOperator(opening));

class UnwindOperator extends PiecesOperator {
  readonly #listRows: Operator;
  readonly #listRowTypes: readonly ColumnType[];

  constructor({ input, node }: Opening) {
    super();
    assert(input !== null, 'lists stand in rows');
    this.#listRows = input;
    this.#listRowTypes = node.input!.columns.map(({ type }) => type);
  }

  close(): void {
    this.#listRows.close();
  }

  protected *pieces(): Pieces {
    const listRowTypes = this.#listRowTypes;
    const listColumn = listRowTypes.length - 1;
    for (let listBatch = this.#listRows.next(); listBatch !== null; listBatch = this.#listRows.next()) {
      let unwoundRows: number[] = [];
      let unwoundValues = new VectorBuilder('json');
      const unwoundBatch = (): Batch => {
        const unwoundSink = new RowSink(listRowTypes);
        unwoundSink.append({
          columns: listBatch!.columns,
          selection: Int32Array.from(unwoundRows),
          first: 0,
          count: unwoundRows.length,
        });
        const unwound = {
          columns: [...unwoundSink.vectors(), unwoundValues.build()],
          selection: null,
          first: 0,
          count: unwoundRows.length,
        };
        unwoundRows = [];
        unwoundValues = new VectorBuilder('json');
        return unwound;
      };
      for (let k = 0; k < listBatch.count; k++) {
        const listRow = listBatch.selection === null ? listBatch.first + k : listBatch.selection[k]!;
        const listJson = cellAt(listBatch.columns[listColumn]!, 'json', listRow);
        if (listJson === null || listJson === 'null') continue;
        const listText = String(listJson);
        for (const listElement of listText.trimStart().startsWith('[') ? elements(listText) : [listText]) {
          unwoundRows.push(listRow);
          unwoundValues.append(listElement);
          if (unwoundRows.length === unwoundOutputRows) yield unwoundBatch();
        }
      }
      yield unwoundRows.length === 0 ? emptyBatch : unwoundBatch();
    }
  }
}
