/**
 * The tool hybrid_search: words, likeness, and the graph. HYBRID_SEARCH fuses the first two; rows of the type that are within two
 * visible hops of the ten best of them are a third list, the nearest first, fused by place as well.
 */
import { z } from 'zod';
import { hiddenItems, hiddenKey } from './quarantined-items.ts';
import { answerMembers, queryReply, knownType, shownRows } from './query.ts';
import { quote, textOf } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

/** Hits whose surroundings count. */
const seedsMost = 10;
const hops = 2;
/** Rows of each list that are fused. */
const listedMost = 1_000;
/** Source: specification, "Search", shape C: the rank constant of reciprocal-rank fusion. */
const rankConstant = 60;

type Shown = Readonly<Record<string, unknown>>;

export const hybridSearch = verb({
  name: 'hybrid_search',
  description: 'Rows of a type by a text: its words, its meaning, and what is connected with the best of them; best first.',
  input: z.object({
    query: z.string().min(1).max(10_000),
    entity_type: z.string().min(1).describe('the type'),
    limit: z.int().min(1).max(1_000).default(20),
    rerank: z.boolean().default(false).describe('whether the reranker of the store orders what was found'),
  }),
  output: z.object(answerMembers) as unknown as z.ZodType,
  action: 'search',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Hybrid search', readOnly: true },
  example: { query: 'tea', entity_type: 'MemoryItem' },
  run: async (verbCall, { query: text, entity_type: name, limit, rerank }) => {
    const definition = knownType(verbCall, name);
    const how = rerank ? ", RERANK => 'true'" : '';
    const toolAnswer = await verbCall.answer(`SELECT * FROM HYBRID_SEARCH($1, $2${how}) LIMIT ${listedMost}`, [
      definition.name,
      text,
    ]);
    const hidden = await hiddenItems(verbCall);
    const isShown = (row: Shown): boolean => !hidden.has(hiddenKey(definition.name, row));
    const rows = await fuse(verbCall, definition.name, { fusedRows: shownRows(toolAnswer).filter(isShown), isShown, rerank });
    verbCall.note({ result: { row_count: Math.min(rows.length, limit) } });
    return {
      ...queryReply(toolAnswer, 0),
      rows: rows.slice(0, limit),
      row_count: Math.min(rows.length, limit),
      truncated: false,
    };
  },
});

interface Found {
  readonly fusedRows: readonly Shown[];
  readonly isShown: (row: Shown) => boolean;
  readonly rerank: boolean;
}

async function fuse(verbCall: VerbCall, type: string, { fusedRows: found, isShown, rerank }: Found): Promise<Shown[]> {
  const near = await surroundings(verbCall, found.slice(0, seedsMost).map(nameOf));
  const known = new Map(found.map((row) => [nameOf(row), row]));
  const others = await rowsNamed(
    verbCall,
    type,
    [...near.keys()].filter((name) => !known.has(name)),
  );
  const all = new Map([...known, ...[...others].filter(([, row]) => isShown(row))]);
  // A reranker's scores are of its own kind: its order counts.
  const reranked = new Map(rerank ? found.map((row, rank) => [nameOf(row), 1 / (rankConstant + rank + 1)]) : []);
  const ranked = [...near].filter(([name]) => all.has(name)).sort(([a, far], [b, further]) => far - further || byBytes(a, b));
  const scoreByName = new Map(ranked.slice(0, listedMost).map(([name], rank) => [name, 1 / (rankConstant + rank + 1)]));
  const scored = [...all].map(([name, row]) => {
    const own = reranked.get(name) ?? (typeof row['_rrf_score'] === 'number' ? row['_rrf_score'] : 0);
    return { ...row, _rrf_score: own + (scoreByName.get(name) ?? 0) };
  });
  return scored.sort((a, b) => b._rrf_score - a._rrf_score || byBytes(keyOf(a), keyOf(b)));
}

/** Names of nodes around these ones, with the fewest hops that lead to each. */
async function surroundings(verbCall: VerbCall, seeds: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const near = new Map<string, number>();
  for (const seed of seeds) {
    const rows = await verbCall.ask(`SELECT * FROM NETWORK_EXPAND($1, ${hops}) LIMIT ${listedMost}`, [seed], 'all');
    for (const row of rows) {
      const name = String(row['nodeId']);
      near.set(name, Math.min(near.get(name) ?? hops, Number(row['hop'])));
    }
  }
  return near;
}

async function rowsNamed(verbCall: VerbCall, type: string, names: readonly string[]): Promise<ReadonlyMap<string, Shown>> {
  const rows = new Map<string, Shown>();
  const hasId = verbCall.snapshot.catalog.type(type)?.properties['id'] !== undefined;
  for (let first = 0; first < names.length; first += listedMost) {
    const some = names.slice(first, first + listedMost);
    const list = some.map((_, i) => `$${i + 1}`).join(', ');
    const named = hasId ? 'COALESCE(CAST(id AS TEXT), _pk)' : '_pk';
    const toolAnswer = await verbCall.answer(
      `SELECT * FROM ${quote(type)} WHERE ${named} IN (${list}) LIMIT ${listedMost}`,
      some,
    );
    for (const row of shownRows(toolAnswer)) rows.set(nameOf(row), row);
  }
  return rows;
}

/** The name under which edges know a row. */
function nameOf(row: Shown): string {
  return textOf((row['id'] ?? row['_pk']) as string | null) ?? '';
}

function keyOf(row: Shown): string {
  return String(row['_pk']);
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
