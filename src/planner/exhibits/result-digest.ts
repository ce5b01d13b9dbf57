/**
 * The hash of an answer: SHA-256 over RFC 8785 JSON of what the caller was given, governed and in order.
 *
 *   {"columns":[{"name":…,"type":…},…], "facets":…, "provenance":[…], "rows":[[cell,…],…]}
 *
 * Integers and instants are decimal strings, numbers ECMAScript's (null where JSON has none), vectors arrays, JSON columns
 * strings of their own text. `facets` and `provenance` are there where the statement asked for them. Written piece by piece, so
 * that an answer of a million rows doesn't block other requests.
 */
import { createHash } from 'node:crypto';
import { canonicalJson, canonicalString, type Json } from '../../log/values/canonical-json.ts';
import type { Cell } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import type { Answer, Facets } from '../planner-contract.ts';

const digestPieceLength = 64 * 1024;
const digestRowsPerTurn = 2_048;

/** Lower-case hex. `yieldTurn` lets other work in between. */
export async function resultDigest(
  answer: Pick<Answer, 'columns' | 'batches' | 'facets' | 'provenance'>,
  yieldTurn: () => Promise<void>,
): Promise<string> {
  const resultHash = createHash('sha256');
  const { columns, batches, facets, provenance } = answer;
  let jsonPiece = `{"columns":${canonicalJson(columns.map(({ name, type }) => ({ name, type })))}`;
  let digestedBytes = 0;
  /** Commas go between, so the first of a list has none. */
  const putJson = async (text: string): Promise<void> => {
    jsonPiece += text;
    if (jsonPiece.length >= digestPieceLength) {
      resultHash.update(jsonPiece, 'utf8');
      jsonPiece = '';
    }
    if (++digestedBytes % digestRowsPerTurn === 0) await yieldTurn();
  };
  if (facets !== null) jsonPiece += `,"facets":${canonicalJson(facetsJson(facets))}`;
  if (provenance !== null) {
    jsonPiece += ',"provenance":[';
    for (const [i, provenanceEntry] of provenance.entries()) {
      const { source, method, confidence, recordedAt, derivedFrom } = provenanceEntry;
      const provenanceJson = { source, method, confidence, recorded_at: recordedAt.toString(), derived_from: derivedFrom };
      await putJson(`${i === 0 ? '' : ','}${canonicalJson(provenanceJson)}`);
    }
    jsonPiece += ']';
  }
  jsonPiece += ',"rows":[';
  let isFirstRow = true;
  for (const { columns: vectors, selection, first: batchStart, count } of batches) {
    for (let k = 0; k < count; k++) {
      const row = selection === null ? batchStart + k : selection[k]!;
      const cellTexts = columns.map(({ type }, i) => digestCellText(cellAt(vectors[i]!, type, row)));
      await putJson(`${isFirstRow ? '' : ','}[${cellTexts.join(',')}]`);
      isFirstRow = false;
    }
  }
  resultHash.update(`${jsonPiece}]}`, 'utf8');
  return resultHash.digest('hex');
}

function digestCellText(cell: Cell): string {
  if (cell === null || typeof cell === 'boolean') return String(cell);
  if (typeof cell === 'bigint') return `"${cell}"`;
  if (typeof cell === 'string') return canonicalString(cell);
  if (typeof cell === 'number') return Number.isFinite(cell) ? canonicalJson(cell) : 'null';
  return canonicalJson([...cell]);
}

function facetsJson({ counts, stats }: Facets): Json {
  const figureJson = (value: bigint | number): Json =>
    typeof value === 'bigint' ? value.toString() : Number.isFinite(value) ? value : null;
  return {
    counts: Object.fromEntries([...counts].map(([attribute, values]) => [attribute, Object.fromEntries(values)])),
    stats: Object.fromEntries(
      [...stats].map(([attribute, { min, max, sum, avg, count }]) => [
        attribute,
        { min: figureJson(min), max: figureJson(max), sum: figureJson(sum), avg: figureJson(avg), count },
      ]),
    ),
  };
}
