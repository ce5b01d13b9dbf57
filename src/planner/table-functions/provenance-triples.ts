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

const provNamespace = 'http://www.w3.org/ns/prov#';
export const provenancePredicates = {
  generatedBy: `${provNamespace}wasGeneratedBy`,
  attributedTo: `${provNamespace}wasAttributedTo`,
  generatedAt: `${provNamespace}generatedAtTime`,
  derivedFrom: `${provNamespace}wasDerivedFrom`,
} as const;

/** Look-ups of provenance in one turn: each goes through the grant. */
const versionsAtOnce = 64;

const tripleColumns: readonly PlanColumn[] = ['subject', 'predicate', 'object'].map((name) => ({ name, type: 'string' }));

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
  columns: () => tripleColumns,
  open: ({ execution, values }) => new ProvenanceOperator(execution, values.text('SUBJECT', execution.kernels)),
};

class ProvenanceOperator extends PiecesOperator {
  readonly #provenanceExecution: Execution;
  readonly #tripleSubject: string | undefined;
  #versionScan: Operator | null = null;

  constructor(provenanceExecution: Execution, tripleSubject: string | undefined) {
    super();
    this.#provenanceExecution = provenanceExecution;
    this.#tripleSubject = tripleSubject;
  }

  close(): void {
    this.#versionScan?.close();
  }

  protected *pieces(): Pieces {
    const { snapshot } = this.#provenanceExecution;
    for (const { name: provenanceType } of snapshot.catalog.types()) {
      // A version is named by its system_from: where that is masked, none is.
      if (!snapshot.offers(provenanceType) || snapshot.masksOf(provenanceType).has('system_from')) continue;
      if (this.#tripleSubject === undefined) yield* this.#triplesOfType(provenanceType);
      else yield* this.#triplesOfVersion(provenanceType, this.#tripleSubject);
    }
  }

  *#triplesOfType(type: string): Pieces {
    const scanDefaults: Pick<ScanNode, 'primaryKey' | 'masked' | 'keys' | 'zones' | 'after'> = {
      primaryKey: null,
      masked: new Map(),
      keys: null,
      zones: [],
      after: null,
    };
    const versionScan = new ScanOperator(
      { kind: 'scan', type, columns: [{ name: 'system_from', type: 'timestamp' }], ...scanDefaults },
      this.#provenanceExecution,
    );
    this.#versionScan = versionScan;
    for (let batch = versionScan.next(); batch !== null; batch = versionScan.next()) {
      // The batch is the scan's until its next call.
      const batchedVersions = batchVersions(batch);
      for (let firstVersion = 0; firstVersion < batchedVersions.length; firstVersion += versionsAtOnce) {
        yield this.#provenanceTriplesOf(type, batchedVersions.slice(firstVersion, firstVersion + versionsAtOnce));
      }
    }
    versionScan.close();
    this.#versionScan = null;
  }

  *#triplesOfVersion(type: string, tripleSubject: string): Pieces {
    if (!/^[0-9a-f]{16}$/.test(tripleSubject)) return;
    const subjectVersion = BigInt.asIntN(64, BigInt(`0x${tripleSubject}`));
    const storedVersion = fetchVersion(this.#provenanceExecution, type, ['system_from'], subjectVersion);
    yield this.#provenanceTriplesOf(type, storedVersion === null ? [] : [subjectVersion]);
  }

  #provenanceTriplesOf(type: string, versions: readonly bigint[]): Batch {
    const tripleRows: [string, string, string][] = [];
    for (const tripleVersion of versions) {
      const lineage = this.#provenanceExecution.snapshot.rows.provenanceOf(type, tripleVersion);
      // Removed for good since it was read.
      if (lineage === undefined) continue;
      const tripleSubject = BigInt.asUintN(64, tripleVersion).toString(16).padStart(16, '0');
      tripleRows.push([tripleSubject, provenancePredicates.generatedBy, lineage.method]);
      tripleRows.push([tripleSubject, provenancePredicates.attributedTo, lineage.source]);
      tripleRows.push([tripleSubject, provenancePredicates.generatedAt, String(tripleVersion)]);
      if (lineage.derivedFrom !== null) tripleRows.push([tripleSubject, provenancePredicates.derivedFrom, lineage.derivedFrom]);
    }
    return {
      columns: tripleColumns.map((_, i) => tripleTexts(tripleRows, i)),
      selection: null,
      first: 0,
      count: tripleRows.length,
    };
  }
}

function tripleTexts(tripleRows: readonly (readonly string[])[], tripleColumn: number): Vector {
  const tripleBuilder = new VectorBuilder('string', Math.max(1, tripleRows.length));
  for (const tripleRow of tripleRows) tripleBuilder.append(tripleRow[tripleColumn]!);
  return tripleBuilder.build();
}

function batchVersions({ columns: [systemFromVector], selection, first, count }: Batch): readonly bigint[] {
  if (systemFromVector?.kind !== 'i64') return [];
  return Array.from({ length: count }, (_, i) => systemFromVector.values[selection === null ? first + i : selection[i]!]!);
}
