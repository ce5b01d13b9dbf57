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
  run: lookUpIdentifier,
});

function* lookUpIdentifier(lookupCall: DomainCall): Steps<readonly DomainRow[]> {
  const soughtIdentifier = new SoughtIdentifier(lookupCall.text('VALUE')!);
  const foundRows: DomainRow[] = [];
  if (soughtIdentifier.forms.size === 0) return foundRows;
  for (const definition of lookupCall.types()) {
    const soughtColumns = identifierColumns(definition).filter(({ kind }) => kind === null || soughtIdentifier.forms.has(kind));
    if (soughtColumns.length > 0) yield* identifierRows(lookupCall, definition.name, soughtColumns, soughtIdentifier, foundRows);
  }
  return foundRows;
}

function identifierRows(
  lookupCall: DomainCall,
  type: string,
  columns: readonly IdentifierColumn[],
  soughtIdentifier: SoughtIdentifier,
  foundRows: DomainRow[],
): Steps<void> {
  return lookupCall.rowsOf(
    type,
    columns.map(({ column }) => column),
    (identifierBatch) => {
      for (let identifierRow = 0; identifierRow < identifierBatch.count; identifierRow++) {
        for (const identifierColumn of columns) {
          const identifierCell = identifierBatch.text(identifierColumn.column, identifierRow);
          const identifierKind = identifierCell === null ? null : soughtIdentifier.kindIn(identifierColumn, identifierCell);
          if (identifierKind === null) continue;
          foundRows.push({
            nodeId: identifierBatch.nodeId(identifierRow),
            type,
            cells: [
              identifierKind,
              identifierColumn.column,
              identifierBatch.instant('valid_from', identifierRow),
              identifierBatch.instant('valid_to', identifierRow),
            ],
            score: 1,
            evidence: { canonical: soughtIdentifier.forms.get(identifierKind)!, written: identifierCell },
            systemFrom: identifierBatch.systemFrom(identifierRow),
          });
        }
      }
      lookupCall.hold(foundRows.length * 384);
    },
    undefined,
    columns.map((identifierColumn) => soughtIdentifier.predicate(identifierColumn)),
  );
}
