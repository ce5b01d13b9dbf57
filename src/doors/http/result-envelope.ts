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
export function envelopeHeaders(envelopeAnswer: Answer): Record<string, string> {
  return {
    'x-service-as-of-system': String(envelopeAnswer.asOfSystem),
    'x-service-row-count': String(envelopeAnswer.rowCount),
    ...(envelopeAnswer.cursor === null ? {} : { 'x-service-cursor': envelopeAnswer.cursor }),
    ...(envelopeAnswer.nextCursor === null ? {} : { 'x-service-next-cursor': envelopeAnswer.nextCursor }),
    // Percent-encoded: names of columns may be in any script.
    ...(envelopeAnswer.notices?.length
      ? { 'x-service-notices': encodeURIComponent(JSON.stringify(envelopeAnswer.notices)) }
      : {}),
  };
}

const columnNamesJson = new WeakMap<Answer['columns'], string>();

const facetValuesPerPiece = 1_024;

/** Written value by value: an object would put values that look like numbers before all others. */
function* facetJsonPieces({ counts: facetCounts, stats: facetStats }: Facets): Generator<string, void> {
  let facetText = ',"facets":{';
  let facetComma = '';
  for (const [facetAttribute, attributeCounts] of facetCounts) {
    facetText += `${facetComma}${JSON.stringify(facetAttribute)}:{`;
    facetComma = ',';
    let facetOrdinal = 0;
    for (const [facetValue, facetCount] of attributeCounts) {
      facetText += `${facetOrdinal === 0 ? '' : ','}${JSON.stringify(facetValue)}:${facetCount}`;
      if (++facetOrdinal % facetValuesPerPiece !== 0) continue;
      yield facetText;
      facetText = '';
    }
    facetText += '}';
  }
  const facetFigures = [...facetStats].map(
    ([attribute, facetFigure]) => `${JSON.stringify(attribute)}:${exactJson({ ...facetFigure })}`,
  );
  yield `${facetText}},"facetStats":{${facetFigures.join()}}`;
}

/** How many values the facets of an answer list. */
export function facetValues({ facets }: Answer): number {
  let facetValueCount = 0;
  if (facets) for (const attributeCounts of facets.counts.values()) facetValueCount += attributeCounts.size;
  return facetValueCount;
}

/** Members of a JSON object, each after a comma, for the end of a reply behind its rows. */
export function envelopeMembers(envelopeAnswer: Answer): string {
  let facetsText = '';
  if (envelopeAnswer.facets !== null) for (const facetPiece of facetJsonPieces(envelopeAnswer.facets)) facetsText += facetPiece;
  return `${firstEnvelopeMembers(envelopeAnswer)}${facetsText}${lastEnvelopeMembers(envelopeAnswer)}`;
}

/** The members in pieces: facets of a hundred thousand values take many turns. */
export function* envelopePieces(envelopeAnswer: Answer): Generator<string, void> {
  yield firstEnvelopeMembers(envelopeAnswer);
  if (envelopeAnswer.facets !== null) yield* facetJsonPieces(envelopeAnswer.facets);
  yield lastEnvelopeMembers(envelopeAnswer);
}

function firstEnvelopeMembers(envelopeAnswer: Answer): string {
  let columnsJson = columnNamesJson.get(envelopeAnswer.columns);
  if (columnsJson === undefined) {
    columnsJson = JSON.stringify(envelopeAnswer.columns.map((answerColumn) => answerColumn.name));
    columnNamesJson.set(envelopeAnswer.columns, columnsJson);
  }
  const processingMs = roundedMs(envelopeAnswer.processingTimeMs);
  let envelopeText =
    `,"row_count":${envelopeAnswer.rowCount},"cost_units":${envelopeAnswer.costUnits},"columns":${columnsJson},"processing_time_ms":${processingMs}` +
    `,"elapsed_ms":${processingMs},"estimatedTotalHits":${envelopeAnswer.estimatedTotalHits},"as_of_system":${envelopeAnswer.asOfSystem}`;
  if (envelopeAnswer.cursor !== null) envelopeText += `,"cursor":${JSON.stringify(envelopeAnswer.cursor)}`;
  if (envelopeAnswer.nextCursor !== null) envelopeText += `,"next_cursor":${JSON.stringify(envelopeAnswer.nextCursor)}`;
  if (envelopeAnswer.provenance !== null) {
    const provenanceEntries = envelopeAnswer.provenance.map((provenanceEntry) => ({
      source: provenanceEntry.source,
      method: provenanceEntry.method,
      confidence: provenanceEntry.confidence,
      recorded_at: provenanceEntry.recordedAt,
      derived_from: provenanceEntry.derivedFrom,
    }));
    envelopeText += `,"provenance":${exactJson(provenanceEntries)}`;
  }
  if (envelopeAnswer.isApproximate) envelopeText += ',"approximate":true';
  if (envelopeAnswer.notices !== undefined && envelopeAnswer.notices.length > 0)
    envelopeText += `,"notices":${JSON.stringify(envelopeAnswer.notices)}`;
  return envelopeText;
}

function lastEnvelopeMembers(envelopeAnswer: Answer): string {
  let envelopeText = '';
  if (envelopeAnswer.plan !== null)
    envelopeText += `,"plan":${JSON.stringify(envelopeAnswer.plan.replace(/\n$/, '').split('\n'))}`;
  if (envelopeAnswer.actualRows !== null) envelopeText += `,"actual_rows":${envelopeAnswer.actualRows}`;
  if (envelopeAnswer.operators !== undefined)
    envelopeText += `,"operators":${JSON.stringify(envelopeAnswer.operators.map(operatorMembers))}`;
  return envelopeText;
}

/** The figures of an operator of EXPLAIN ANALYZE, under the names that all doors use. */
export function operatorMembers(operatorFigures: OperatorFigures): Record<string, string | number | null> {
  const { part: planPart, depth: planDepth, operator, line: planLine, state, index, timeMs } = operatorFigures;
  return {
    part: planPart,
    depth: planDepth,
    operator,
    line: planLine,
    state,
    rows_in: operatorFigures.rowsIn,
    rows_out: operatorFigures.rowsOut,
    rows_expected: operatorFigures.rowsExpected,
    time_ms: timeMs === null ? null : roundedMs(timeMs),
    memory_bytes: operatorFigures.memoryBytes,
    index,
  };
}

/** Milliseconds to the microsecond. */
function roundedMs(elapsedMs: number): number {
  return Math.round(elapsedMs * 1000) / 1000;
}
