/** An answer's envelope: the members of a reply beside its rows. Source: specification, "Result envelopes". */
import type { Answer, Facets, OperatorFigures } from '../../planner/planner-contract.ts';
import { exactJson } from '../shared/write-exact-json.ts';

/** Metadata of an answer for formats that can carry it: its basis and size, and the envelope that /query gives. */
export function envelopeFields(answer: Answer): ReadonlyMap<string, string> {
  return new Map([
    ['annals.as_of_system', String(answer.asOfSystem)],
    ['annals.row_count', String(answer.rowCount)],
    ['annals.envelope', `{${envelopeMembers(answer).slice(1)}}`],
  ]);
}

/** The envelope as headers, for bodies without room for it. */
export function envelopeHeaders(answer: Answer): Record<string, string> {
  return {
    'x-service-as-of-system': String(answer.asOfSystem),
    'x-service-row-count': String(answer.rowCount),
    ...(answer.cursor === null ? {} : { 'x-service-cursor': answer.cursor }),
    ...(answer.nextCursor === null ? {} : { 'x-service-next-cursor': answer.nextCursor }),
    // Percent-encoded: names of columns may be in any script.
    ...(answer.notices?.length ? { 'x-service-notices': encodeURIComponent(JSON.stringify(answer.notices)) } : {}),
  };
}

const columnNames = new WeakMap<Answer['columns'], string>();

const facetValuesPerPiece = 1_024;

/** Written value by value: an object would put values that look like numbers before all others. */
function* facetPieces({ counts, stats }: Facets): Generator<string, void> {
  let text = ',"facets":{';
  let between = '';
  for (const [attribute, values] of counts) {
    text += `${between}${JSON.stringify(attribute)}:{`;
    between = ',';
    let at = 0;
    for (const [value, count] of values) {
      text += `${at === 0 ? '' : ','}${JSON.stringify(value)}:${count}`;
      if (++at % facetValuesPerPiece !== 0) continue;
      yield text;
      text = '';
    }
    text += '}';
  }
  const figures = [...stats].map(([attribute, figure]) => `${JSON.stringify(attribute)}:${exactJson({ ...figure })}`);
  yield `${text}},"facetStats":{${figures.join()}}`;
}

/** How many values the facets of an answer list. */
export function facetValues({ facets }: Answer): number {
  let values = 0;
  if (facets) for (const counts of facets.counts.values()) values += counts.size;
  return values;
}

/** Members of a JSON object, each after a comma, for the end of a reply behind its rows. */
export function envelopeMembers(answer: Answer): string {
  let facets = '';
  if (answer.facets !== null) for (const piece of facetPieces(answer.facets)) facets += piece;
  return `${firstMembers(answer)}${facets}${lastMembers(answer)}`;
}

/** The members in pieces: facets of a hundred thousand values take many turns. */
export function* envelopePieces(answer: Answer): Generator<string, void> {
  yield firstMembers(answer);
  if (answer.facets !== null) yield* facetPieces(answer.facets);
  yield lastMembers(answer);
}

function firstMembers(answer: Answer): string {
  let columns = columnNames.get(answer.columns);
  if (columns === undefined) {
    columns = JSON.stringify(answer.columns.map((column) => column.name));
    columnNames.set(answer.columns, columns);
  }
  const ms = round(answer.processingTimeMs);
  let text =
    `,"row_count":${answer.rowCount},"cost_units":${answer.costUnits},"columns":${columns},"processing_time_ms":${ms}` +
    `,"elapsed_ms":${ms},"estimatedTotalHits":${answer.estimatedTotalHits},"as_of_system":${answer.asOfSystem}`;
  if (answer.cursor !== null) text += `,"cursor":${JSON.stringify(answer.cursor)}`;
  if (answer.nextCursor !== null) text += `,"next_cursor":${JSON.stringify(answer.nextCursor)}`;
  if (answer.provenance !== null) {
    const entries = answer.provenance.map((entry) => ({
      source: entry.source,
      method: entry.method,
      confidence: entry.confidence,
      recorded_at: entry.recordedAt,
      derived_from: entry.derivedFrom,
    }));
    text += `,"provenance":${exactJson(entries)}`;
  }
  if (answer.isApproximate) text += ',"approximate":true';
  if (answer.notices !== undefined && answer.notices.length > 0) text += `,"notices":${JSON.stringify(answer.notices)}`;
  return text;
}

function lastMembers(answer: Answer): string {
  let text = '';
  if (answer.plan !== null) text += `,"plan":${JSON.stringify(answer.plan.replace(/\n$/, '').split('\n'))}`;
  if (answer.actualRows !== null) text += `,"actual_rows":${answer.actualRows}`;
  if (answer.operators !== undefined) text += `,"operators":${JSON.stringify(answer.operators.map(operatorMembers))}`;
  return text;
}

/** The figures of an operator of EXPLAIN ANALYZE, under the names that all doors use. */
export function operatorMembers(figures: OperatorFigures): Record<string, string | number | null> {
  const { part, depth, operator, line, state, index, timeMs } = figures;
  return {
    part,
    depth,
    operator,
    line,
    state,
    rows_in: figures.rowsIn,
    rows_out: figures.rowsOut,
    rows_expected: figures.rowsExpected,
    time_ms: timeMs === null ? null : round(timeMs),
    memory_bytes: figures.memoryBytes,
    index,
  };
}

/** Milliseconds to the microsecond. */
function round(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
