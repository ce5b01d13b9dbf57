/** An answer's envelope: all that a reply says of the rows beside the rows. Source: specification, "Result envelopes". */
import type { Answer, Facets } from '../../planner/planner-contract.ts';
import { exactJson } from './exact-json.ts';

/** What formats with a place for facts keep of an answer: its basis and size, and the envelope that /query gives. */
export function envelopeFacts(answer: Answer): ReadonlyMap<string, string> {
  return new Map([
    ['annals.as_of_system', String(answer.asOfSystem)],
    ['annals.row_count', String(answer.rowCount)],
    ['annals.envelope', `{${envelopeMembers(answer).slice(1)}}`],
  ]);
}

/** The same facts as headers of a body that has no place for them. */
export function envelopeHeaders(answer: Answer): Record<string, string> {
  return {
    'x-service-as-of-system': String(answer.asOfSystem),
    'x-service-row-count': String(answer.rowCount),
    ...(answer.cursor === null ? {} : { 'x-service-cursor': answer.cursor }),
    ...(answer.nextCursor === null ? {} : { 'x-service-next-cursor': answer.nextCursor }),
  };
}

const columnNames = new WeakMap<Answer['columns'], string>();

/** Written value by value: an object would put values that look like numbers before all others. */
function facetMembers({ counts, stats }: Facets): string {
  const members = (entries: readonly [string, string][]): string =>
    `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join()}}`;
  const attributes = [...counts].map(([attribute, values]): [string, string] => [
    attribute,
    members([...values].map(([value, count]): [string, string] => [value, String(count)])),
  ]);
  const figures = [...stats].map(([attribute, figure]): [string, string] => [attribute, exactJson({ ...figure })]);
  return `,"facets":${members(attributes)},"facetStats":${members(figures)}`;
}

/** Members of a JSON object, each after a comma: what follows the rows. */
export function envelopeMembers(answer: Answer): string {
  let columns = columnNames.get(answer.columns);
  if (columns === undefined) {
    columns = JSON.stringify(answer.columns.map((column) => column.name));
    columnNames.set(answer.columns, columns);
  }
  const ms = Math.round(answer.processingTimeMs * 1000) / 1000;
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
  if (answer.facets !== null) text += facetMembers(answer.facets);
  if (answer.plan !== null) text += `,"plan":${JSON.stringify(answer.plan.replace(/\n$/, '').split('\n'))}`;
  if (answer.actualRows !== null) text += `,"actual_rows":${answer.actualRows}`;
  return text;
}
