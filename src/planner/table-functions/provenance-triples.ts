/**
 * PROVENANCE_TRIPLES: where every visible row comes from, as triples. ProvenanceTriple is a name for all of them, that joins like
 * a type. Source: specification, "Other resources", the provenance graph view.
 *
 *   subject                     predicate              object
 *   system_from, 16 hex digits  prov:wasGeneratedBy    the method
 *                               prov:wasAttributedTo   the source
 *                               prov:generatedAtTime   system_from, nanoseconds
 *                               prov:wasDerivedFrom    the subject that it was derived from, where there is one
 *
 * `prov:` stands for its IRI.
 */
import type { Vector } from '../../log/values/columns.ts';
import { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { PlanColumn, ScanNode } from '../logical-plan.ts';
import { type Batch, type Execution, type Operator, type Pieces, PiecesOperator } from '../operators/operator.ts';
import { fetchVersion } from '../operators/ranked-rows.ts';
import { ScanOperator } from '../operators/scan.ts';
import type { TableFunction } from '../calls/table-function.ts';

const prov = 'http://www.w3.org/ns/prov#';
export const provenancePredicates = {
  generatedBy: `${prov}wasGeneratedBy`,
  attributedTo: `${prov}wasAttributedTo`,
  generatedAt: `${prov}generatedAtTime`,
  derivedFrom: `${prov}wasDerivedFrom`,
} as const;

/** Look-ups of provenance in one turn: each goes through the grant. */
const rowsAtOnce = 64;

const columns: readonly PlanColumn[] = ['subject', 'predicate', 'object'].map((name) => ({ name, type: 'string' }));

export const provenanceTriples: TableFunction = {
  name: 'PROVENANCE_TRIPLES',
  table: 'ProvenanceTriple',
  summary: 'Where rows come from: for each version its method, source, instant, and what it was derived from.',
  arguments: [{ name: 'SUBJECT', kind: 'text', summary: 'one version, by its system_from as 16 hex digits; all by default' }],
  seeks: { column: 'subject', argument: 'SUBJECT' },
  action: 'query',
  units: 1,
  deterministic: true,
  types: ({ catalog }) => catalog?.types().map(({ name }) => name) ?? [],
  columns: () => columns,
  open: ({ execution, values }) => new ProvenanceOperator(execution, values.text('SUBJECT', execution.kernels)),
};

class ProvenanceOperator extends PiecesOperator {
  readonly #execution: Execution;
  readonly #subject: string | undefined;
  #scan: Operator | null = null;

  constructor(execution: Execution, subject: string | undefined) {
    super();
    this.#execution = execution;
    this.#subject = subject;
  }

  close(): void {
    this.#scan?.close();
  }

  protected *pieces(): Pieces {
    const { snapshot } = this.#execution;
    for (const { name } of snapshot.catalog.types()) {
      // A version is named by its system_from: where that is masked, none is.
      if (!snapshot.offers(name) || snapshot.masksOf(name).has('system_from')) continue;
      if (this.#subject === undefined) yield* this.#all(name);
      else yield* this.#one(name, this.#subject);
    }
  }

  *#all(type: string): Pieces {
    const of: Pick<ScanNode, 'primaryKey' | 'masked' | 'keys' | 'zones' | 'after'> = {
      primaryKey: null,
      masked: new Map(),
      keys: null,
      zones: [],
      after: null,
    };
    const scan = new ScanOperator(
      { kind: 'scan', type, columns: [{ name: 'system_from', type: 'timestamp' }], ...of },
      this.#execution,
    );
    this.#scan = scan;
    for (let batch = scan.next(); batch !== null; batch = scan.next()) {
      // The batch is the scan's until its next call.
      const versions = versionsOf(batch);
      for (let first = 0; first < versions.length; first += rowsAtOnce) {
        yield this.#triples(type, versions.slice(first, first + rowsAtOnce));
      }
    }
    scan.close();
    this.#scan = null;
  }

  *#one(type: string, subject: string): Pieces {
    if (!/^[0-9a-f]{16}$/.test(subject)) return;
    const version = BigInt.asIntN(64, BigInt(`0x${subject}`));
    const storedVersion = fetchVersion(this.#execution, type, ['system_from'], version);
    yield this.#triples(type, storedVersion === null ? [] : [version]);
  }

  #triples(type: string, versions: readonly bigint[]): Batch {
    const rows: [string, string, string][] = [];
    for (const version of versions) {
      const lineage = this.#execution.snapshot.rows.provenanceOf(type, version);
      // Removed for good since it was read.
      if (lineage === undefined) continue;
      const subject = BigInt.asUintN(64, version).toString(16).padStart(16, '0');
      rows.push([subject, provenancePredicates.generatedBy, lineage.method]);
      rows.push([subject, provenancePredicates.attributedTo, lineage.source]);
      rows.push([subject, provenancePredicates.generatedAt, String(version)]);
      if (lineage.derivedFrom !== null) rows.push([subject, provenancePredicates.derivedFrom, lineage.derivedFrom]);
    }
    return { columns: columns.map((_, i) => textsOf(rows, i)), selection: null, first: 0, count: rows.length };
  }
}

function textsOf(rows: readonly (readonly string[])[], column: number): Vector {
  const builder = new VectorBuilder('string', Math.max(1, rows.length));
  for (const row of rows) builder.append(row[column]!);
  return builder.build();
}

function versionsOf({ columns: [vector], selection, first, count }: Batch): readonly bigint[] {
  if (vector?.kind !== 'i64') return [];
  return Array.from({ length: count }, (_, i) => vector.values[selection === null ? first + i : selection[i]!]!);
}
