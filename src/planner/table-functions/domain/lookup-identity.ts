/** LOOKUP_IDENTITY: rows that hold an identifier, however it is written. Source: specification, "SQL dialect", the table of operators. */
import type { Steps } from '../../graph/stepped-sort.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import { type IdentifierColumn, identifierColumns, SoughtIdentifier } from './identifier-columns.ts';

export const lookupIdentity: TableFunction = domainFunction({
  name: 'LOOKUP_IDENTITY',
  summary: 'Rows of every type that hold an identifier, however it is written: a phone number, an account, a device, a plate.',
  method: 'identifiers/1',
  arguments: [{ name: 'VALUE', kind: 'key', required: true, summary: 'the identifier' }],
  roles: [],
  everyType: true,
  columns: [
    { name: 'kind', type: 'string' },
    { name: 'column', type: 'string' },
    { name: 'valid_from', type: 'timestamp' },
    { name: 'valid_to', type: 'timestamp' },
  ],
  run: lookUp,
});

function* lookUp(call: DomainCall): Steps<readonly DomainRow[]> {
  const sought = new SoughtIdentifier(call.text('VALUE')!);
  const rows: DomainRow[] = [];
  if (sought.forms.size === 0) return rows;
  for (const definition of call.types()) {
    const columns = identifierColumns(definition).filter(({ kind }) => kind === null || sought.forms.has(kind));
    if (columns.length > 0) yield* rowsOf(call, definition.name, columns, sought, rows);
  }
  return rows;
}

function rowsOf(
  call: DomainCall,
  type: string,
  columns: readonly IdentifierColumn[],
  sought: SoughtIdentifier,
  rows: DomainRow[],
): Steps<void> {
  return call.rowsOf(
    type,
    columns.map(({ column }) => column),
    (batch) => {
      for (let row = 0; row < batch.count; row++) {
        for (const each of columns) {
          const cell = batch.text(each.column, row);
          const kind = cell === null ? null : sought.kindIn(each, cell);
          if (kind === null) continue;
          rows.push({
            nodeId: batch.nodeId(row),
            type,
            cells: [kind, each.column, batch.instant('valid_from', row), batch.instant('valid_to', row)],
            score: 1,
            evidence: { canonical: sought.forms.get(kind)!, written: cell },
            systemFrom: batch.systemFrom(row),
          });
        }
      }
      call.hold(rows.length * 384);
    },
    undefined,
    columns.map((each) => sought.predicate(each)),
  );
}
