/**
 * CALL … .write: scores of a function over the graph as a column of its nodes. The function and the rows are read on one
 * snapshot, then patched in batches, as a job. A row that has gone meanwhile is left out; batches written before a job is
 * cancelled stay. One that a crash cut off is run again from its statement, over what is there then.
 */
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { JobRunner, JobSpec, JobWork } from '../../governance/jobs/job-runner.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { PutRows } from '../../projections/command.ts';
import { smallAnswer } from '../execution/small-answer.ts';
import { columnOf, equal, queryOf, selectOf } from '../languages/tree-builders.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Executed, OutputBatch, OutputColumn, RowTaker } from '../planner-contract.ts';
import type { Expression, Query, Source } from '../syntax/statement.ts';
import type { GraphWrite } from '../syntax/write-statement.ts';
import { vectorOf } from './rows-read.ts';
import type { GraphWriteRequest } from './graph-write.ts';
import { maskedColumn } from './returning.ts';

type ScoreWrite = Extract<GraphWrite, { kind: 'scores' }>;

const rowsAtOnce = 1_024;

export interface ScoreWriteRequest extends GraphWriteRequest<ScoreWrite> {
  /** The statement that a start may run again, and the work on record that it is then. */
  readonly work: Partial<Pick<JobSpec<unknown>, 'id' | 'attempt' | 'lane' | 'statement'>>;
}

export async function runScoreWrite(request: ScoreWriteRequest, jobs: JobRunner | null): Promise<Executed> {
  const { statement, invocation, host, onKnown } = request;
  const type = String(host.literal(statement.type.slot));
  const property = String(host.literal(statement.property.slot));
  invocation.describe({ action: 'query', act: { action: 'ingest' }, objectType: type });
  const snapshot = invocation.snapshot();
  const definition = snapshot.catalog.type(type);
  if (definition === undefined)
    throw errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(type)} is not registered`, statement.type.location);
  checkProperty(definition, property, statement);
  onKnown();
  const written = { rows: 0, first: 0n, last: 0n, durability: 'synced' as 'synced' | 'buffered' };
  const run = async ({ signal, progress }: Pick<JobWork, 'signal' | 'progress'>): Promise<void> => {
    const scores = new Scored();
    const computedFrom = new Set<string>();
    await host.read({
      query: scoredRows(statement, type, snapshot),
      part: 'scores',
      rows: scores,
      snapshot,
      signal,
      onPlan: ({ reads }) => {
        for (const { type: read, columns } of reads) {
          const masks = snapshot.masksOf(read);
          const masked = columns.find((name) => masks.has(name));
          if (masked !== undefined) throw maskedColumn(read, masked);
          if (read === type) for (const name of columns) computedFrom.add(name);
        }
      },
    });
    invocation.describe({ action: 'ingest' });
    const put = patcher({ definition, property, scores, computedFrom: [...computedFrom], door: invocation.caller.door });
    for (let first = 0; first < scores.rows; first += rowsAtOnce) {
      signal.throwIfAborted();
      const outcome = await invocation.submit(put(first), { sync: request.sync, waits: true });
      const [refused] = outcome.errors.filter(({ code }) => code !== 'REL_CONFLICT');
      if (refused !== undefined) throw new ServiceError(refused.code as 'REL_ACL', refused.detail);
      written.rows += outcome.accepted;
      if (written.first === 0n) written.first = outcome.systemFrom;
      if (outcome.accepted > 0) written.last = outcome.systemFromLast;
      written.durability = outcome.durability;
      progress(Math.min(first + rowsAtOnce, scores.rows), scores.rows);
    }
  };
  if (jobs === null) await run({ signal: new AbortController().signal, progress: () => undefined });
  else {
    const spec = { kind: 'graph', about: type, unit: 'rows', onDrain: 'cancel', run } as const;
    const resultOf = () => ({ rows: written.rows });
    await jobs.start({ ...spec, ...request.work, resultOf }, invocation.caller).ended;
  }
  const facts = { asOfSystem: snapshot.instant, costUnits: 1, processingTimeMs: host.processingTimeMs() };
  const { rows, first, last, durability } = written;
  return {
    answer: smallAnswer([{ name: 'rowsWritten', type: 'integer' }], [[BigInt(rows)]], facts),
    written: {
      verb: 'update',
      inserted: 0,
      updated: rows,
      deleted: 0,
      kept: 0,
      graph: { nodes: 0, relationships: 0, properties: rows },
      systemFrom: first,
      systemFromLast: last,
      durability,
    },
  };
}

function checkProperty(
  { name, open, properties, primaryKey }: TypeDefinition,
  property: string,
  { property: { location } }: ScoreWrite,
): void {
  const declared = Object.hasOwn(properties, property) ? properties[property]! : null;
  if (declared === null && !open)
    throw errorAt('REL_UNKNOWN_COLUMN', `type ${JSON.stringify(name)} has no column ${JSON.stringify(property)}`, location);
  if (property === primaryKey || property === 'id')
    throw errorAt('REL_INVALID', `${JSON.stringify(property)} names the row, and stays`, location);
  if (declared !== null && declared.type !== 'number')
    throw errorAt(
      'REL_TYPE_MISMATCH',
      `scores are numbers: column ${JSON.stringify(property)} is of type ${declared.type}`,
      location,
    );
}

/** Keys of the caller's own rows, each with the score of the node that it is. */
function scoredRows({ query, nullSlot, location }: ScoreWrite, type: string, { caller }: GovernedSnapshot): Query {
  const [rows, scores] = ['\0rows', '\0scores'];
  const text: Expression = {
    kind: 'call',
    name: 'CAST',
    arguments: [
      { name: null, value: columnOf('id', location, rows) },
      { name: 'TYPE', value: columnOf('TEXT', location) },
    ],
    location,
  };
  const name: Expression = {
    kind: 'call',
    name: 'COALESCE',
    arguments: [text, columnOf('_pk', location, rows)].map((value) => ({ name: null, value })),
    location,
  };
  const path = columnOf('namespace_path', location, rows);
  const own: Expression =
    caller.path === null
      ? { kind: 'is-null', operand: path, negated: false, location }
      : equal(path, { kind: 'literal', slot: nullSlot + 1, location });
  const from: Source = {
    kind: 'join',
    type: 'inner',
    left: { kind: 'table', name: type, alias: rows, location },
    right: { kind: 'subquery', query, alias: scores, columns: [], location },
    on: equal(name, columnOf('nodeId', location, scores)),
    using: null,
    location,
  };
  const projection = [columnOf('_pk', location, rows), columnOf('score', location, scores)].map(
    (expression, i) => ({ kind: 'expression', expression, alias: `\0${i}`, location }) as const,
  );
  return queryOf(selectOf({ projection, from, where: own, location }), null);
}

interface Patching {
  readonly definition: TypeDefinition;
  readonly property: string;
  readonly scores: Scored;
  readonly computedFrom: readonly string[];
  readonly door: string;
}

function patcher({ definition, property, scores: computed, computedFrom, door }: Patching): (first: number) => PutRows {
  return (first) => {
    const keys = computed.keys.slice(first, first + rowsAtOnce);
    const scores = computed.scores.slice(first, first + rowsAtOnce);
    return {
      kind: 'put-rows',
      type: definition.name,
      rows: {
        length: keys.length,
        columns: [
          { name: '_pk', type: 'string', vector: vectorOf(keys, 'string') },
          { name: property, type: 'number', vector: vectorOf(scores, 'number') },
        ],
      },
      atomic: false,
      createType: false,
      provenance: { source: door, method: 'graph', confidence: 1, derivedFrom: null },
      patch: new Map([[property, new Uint8Array(keys.length).fill(1)]]),
      when: 'present',
      computedFrom,
    };
  };
}

/** A function may give a node several rows: the first counts. */
class Scored implements RowTaker {
  keys: string[] = [];
  scores: (number | null)[] = [];
  #known = new Set<string>();

  get rows(): number {
    return this.keys.length;
  }

  get bytes(): number {
    return 96 * this.keys.length;
  }

  take(columns: readonly OutputColumn[], { columns: vectors, selection, first, count }: OutputBatch): boolean {
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      const key = String(cellAt(vectors[0]!, columns[0]!.type, row));
      if (this.#known.has(key)) continue;
      this.#known.add(key);
      this.keys.push(key);
      const score = cellAt(vectors[1]!, columns[1]!.type, row);
      this.scores.push(score === null ? null : Number(score));
    }
    return true;
  }

  restart(): void {
    this.keys = [];
    this.scores = [];
    this.#known = new Set();
  }
}
