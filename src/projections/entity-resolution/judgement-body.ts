/**
 * Judgements in the log: entries of the open kind `judgement`, whose content is RFC 8785 JSON:
 *
 *   {"a":{"key","positions","type"},"b":{…},"judgement":"positive"|"negative","reason":text|null,"v":1}
 *
 * `positions` are those of the newest versions that the row had when it was judged: by them a judgement goes when its rows are
 * removed or erased, whatever their keys say. A content of another form or version is nothing that this release applies.
 */
import { canonicalJson } from '../../log/values/canonical-json.ts';
import type { OpenBody } from '../../log/entries/entry.ts';

/** A row as its readers name it. */
export interface JudgedRow {
  readonly type: string;
  readonly key: string;
  /** Positions of its newest versions, one for each organisation path that has the key; ascending. */
  readonly positions: readonly number[];
}

export interface JudgementContent {
  readonly a: JudgedRow;
  readonly b: JudgedRow;
  /** Whether both are one thing. */
  readonly judgement: 'positive' | 'negative';
  readonly reason: string | null;
}

const judgementVersion = 1;

export function judgementBody({ a, b, judgement, reason }: JudgementContent): OpenBody {
  const judgedRow = ({ type, key, positions }: JudgedRow) => ({ type, key, positions });
  return {
    kind: 'judgement',
    content: canonicalJson({ v: judgementVersion, a: judgedRow(a), b: judgedRow(b), judgement, reason }),
  };
}

/** Null where the content was dropped, or is none of this version's. */
export function judgementOf({ content }: OpenBody): JudgementContent | null {
  if (typeof content !== 'string') return null;
  const { v, a, b, judgement, reason } = judgementObjectOf(content);
  if (v !== judgementVersion || !isJudgedRow(a) || !isJudgedRow(b)) return null;
  if ((judgement !== 'positive' && judgement !== 'negative') || (reason !== null && typeof reason !== 'string')) return null;
  return { a, b, judgement, reason };
}

function judgementObjectOf(content: string): Readonly<Record<string, unknown>> {
  const parsedJudgement: unknown = JSON.parse(content);
  return typeof parsedJudgement === 'object' && parsedJudgement !== null ? (parsedJudgement as Record<string, unknown>) : {};
}

function isJudgedRow(judgedRow: unknown): judgedRow is JudgedRow {
  if (typeof judgedRow !== 'object' || judgedRow === null) return false;
  const { type, key, positions } = judgedRow as Partial<JudgedRow>;
  return typeof type === 'string' && typeof key === 'string' && Array.isArray(positions) && positions.every(Number.isSafeInteger);
}
