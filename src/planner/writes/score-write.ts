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

const scoresPerWrite = 1_024;

export interface ScoreWriteRequest extends GraphWriteRequest<ScoreWrite> {
  /** The statement that a start may run again, and the work on record that it is then. */
  readonly work: Partial<Pick<JobSpec<unknown>, 'id' | 'attempt' | 'lane' | 'statement'>>;
}

export async function runScoreWrite(request: ScoreWriteRequest, jobs: JobRunner | null): Promise<Executed> {
  const { statement, invocation, host, onKnown } = request;
  const scoredType = String(host.literal(statement.type.slot));
  const scoredProperty = String(host.literal(statement.property.slot));
  invocation.describe({ action: 'query', act: { action: 'ingest' }, objectType: scoredType });
  const snapshot = invocation.snapshot();
  const definition = snapshot.catalog.type(scoredType);
  if (definition === undefined)
    throw errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(scoredType)} is not registered`, statement.type.location);
  checkScoredProperty(definition, scoredProperty, statement);
  onKnown();
  const scoresWritten = { rows: 0, first: 0n, last: 0n, durability: 'synced' as 'synced' | 'buffered' };
  const writeScores = async ({ signal, progress }: Pick<JobWork, 'signal' | 'progress'>): Promise<void> => {
    const scores = new ScoredRows();
    const computedFrom = new Set<string>();
    await host.read({
      query: scoredRowsQuery(statement, scoredType, snapshot),
      part: 'scores',
      rows: scores,
      snapshot,
      signal,
      onPlan: ({ reads }) => {
        for (const { type: typeRead, columns } of reads) {
          const typeMasks = snapshot.masksOf(typeRead);
          const maskedRead = columns.find((name) => typeMasks.has(name));
          if (maskedRead !== undefined) throw maskedColumn(typeRead, maskedRead);
          if (typeRead === scoredType) for (const name of columns) computedFrom.add(name);
        }
      },
    });
    invocation.describe({ action: 'ingest' });
    const patchFrom = scorePatcher({
      definition,
      property: scoredProperty,
      scores,
      computedFrom: [...computedFrom],
      door: invocation.caller.door,
    });
    for (let firstScored = 0; firstScored < scores.rows; firstScored += scoresPerWrite) {
      signal.throwIfAborted();
      const scoreOutcome = await invocation.submit(patchFrom(firstScored), { sync: request.sync, waits: true });
      const [refusedScore] = scoreOutcome.errors.filter(({ code }) => code !== 'REL_CONFLICT');
      if (refusedScore !== undefined) throw new ServiceError(refusedScore.code as 'REL_ACL', refusedScore.detail);
      scoresWritten.rows += scoreOutcome.accepted;
      if (scoresWritten.first === 0n) scoresWritten.first = scoreOutcome.systemFrom;
      if (scoreOutcome.accepted > 0) scoresWritten.last = scoreOutcome.systemFromLast;
      scoresWritten.durability = scoreOutcome.durability;
      progress(Math.min(firstScored + scoresPerWrite, scores.rows), scores.rows);
    }
  };
  if (jobs === null) await writeScores({ signal: new AbortController().signal, progress: () => undefined });
  else {
    const scoreJob = { kind: 'graph', about: scoredType, unit: 'rows', onDrain: 'cancel', run: writeScores } as const;
    const resultOf = () => ({ rows: scoresWritten.rows });
    await jobs.start({ ...scoreJob, ...request.work, resultOf }, invocation.caller).ended;
  }
  const scoreFigures = { asOfSystem: snapshot.instant, costUnits: 1, processingTimeMs: host.processingTimeMs() };
  const { rows, first, last, durability } = scoresWritten;
  return {
    answer: smallAnswer([{ name: 'rowsWritten', type: 'integer' }], [[BigInt(rows)]], scoreFigures),
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

function checkScoredProperty(
  { name, open, properties, primaryKey }: TypeDefinition,
  property: string,
  { property: { location } }: ScoreWrite,
): void {
  const declaredProperty = Object.hasOwn(properties, property) ? properties[property]! : null;
  if (declaredProperty === null && !open)
    throw errorAt('REL_UNKNOWN_COLUMN', `type ${JSON.stringify(name)} has no column ${JSON.stringify(property)}`, location);
  if (property === primaryKey || property === 'id')
    throw errorAt('REL_INVALID', `${JSON.stringify(property)} names the row, and stays`, location);
  if (declaredProperty !== null && declaredProperty.type !== 'number')
    throw errorAt(
      'REL_TYPE_MISMATCH',
      `scores are numbers: column ${JSON.stringify(property)} is of type ${declaredProperty.type}`,
      location,
    );
}

/** Keys of the caller's own rows, each with the score of the node that it is. */
function scoredRowsQuery({ query, nullSlot, location }: ScoreWrite, type: string, { caller }: GovernedSnapshot): Query {
  const [rowsAlias, scoresAlias] = ['\0rows', '\0scores'];
  const idAsText: Expression = {
    kind: 'call',
    name: 'CAST',
    arguments: [
      { name: null, value: columnOf('id', location, rowsAlias) },
      { name: 'TYPE', value: columnOf('TEXT', location) },
    ],
    location,
  };
  const nodeName: Expression = {
    kind: 'call',
    name: 'COALESCE',
    arguments: [idAsText, columnOf('_pk', location, rowsAlias)].map((value) => ({ name: null, value })),
    location,
  };
  const namespacePath = columnOf('namespace_path', location, rowsAlias);
  const isOwnPath: Expression =
    caller.path === null
      ? { kind: 'is-null', operand: namespacePath, negated: false, location }
      : equal(namespacePath, { kind: 'literal', slot: nullSlot + 1, location });
  const scoredSource: Source = {
    kind: 'join',
    type: 'inner',
    left: { kind: 'table', name: type, alias: rowsAlias, location },
    right: { kind: 'subquery', query, alias: scoresAlias, columns: [], location },
    on: equal(nodeName, columnOf('nodeId', location, scoresAlias)),
    using: null,
    location,
  };
  const scoredProjection = [columnOf('_pk', location, rowsAlias), columnOf('score', location, scoresAlias)].map(
    (expression, i) => ({ kind: 'expression', expression, alias: `\0${i}`, location }) as const,
  );
  return queryOf(selectOf({ projection: scoredProjection, from: scoredSource, where: isOwnPath, location }), null);
}

interface ScorePatching {
  readonly definition: TypeDefinition;
  readonly property: string;
  readonly scores: ScoredRows;
  readonly computedFrom: readonly string[];
  readonly door: string;
}

function scorePatcher({ definition, property, scores: computed, computedFrom, door }: ScorePatching): (first: number) => PutRows {
  return (first) => {
    const patchedKeys = computed.keys.slice(first, first + scoresPerWrite);
    const patchedScores = computed.scores.slice(first, first + scoresPerWrite);
    return {
      kind: 'put-rows',
      type: definition.name,
      rows: {
        length: patchedKeys.length,
        columns: [
          { name: '_pk', type: 'string', vector: vectorOf(patchedKeys, 'string') },
          { name: property, type: 'number', vector: vectorOf(patchedScores, 'number') },
        ],
      },
      atomic: false,
      createType: false,
      provenance: { source: door, method: 'graph', confidence: 1, derivedFrom: null },
      patch: new Map([[property, new Uint8Array(patchedKeys.length).fill(1)]]),
      when: 'present',
      computedFrom,
    };
  };
}

/** A function may give a node several rows: the first counts. */
class ScoredRows implements RowTaker {
  keys: string[] = [];
  scores: (number | null)[] = [];
  #scoredKeys = new Set<string>();

  get rows(): number {
    return this.keys.length;
  }

  get bytes(): number {
    return 96 * this.keys.length;
  }

  take(columns: readonly OutputColumn[], { columns: vectors, selection, first, count }: OutputBatch): boolean {
    for (let i = 0; i < count; i++) {
      const row = selection === null ? first + i : selection[i]!;
      const scoredKey = String(cellAt(vectors[0]!, columns[0]!.type, row));
      if (this.#scoredKeys.has(scoredKey)) continue;
      this.#scoredKeys.add(scoredKey);
      this.keys.push(scoredKey);
      const scoreCell = cellAt(vectors[1]!, columns[1]!.type, row);
      this.scores.push(scoreCell === null ? null : Number(scoreCell));
    }
    return true;
  }

  restart(): void {
    this.keys = [];
    this.scores = [];
    this.#scoredKeys = new Set();
  }
}
