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
const hybridSeedsMax = 10;
const hybridHops = 2;
/** Rows of each list that are fused. */
const hybridRowsMax = 1_000;
/** Source: specification, "Search", shape C: the rank constant of reciprocal-rank fusion. */
const hybridRankConstant = 60;

type HybridRow = Readonly<Record<string, unknown>>;

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
  run: async (verbCall, { query: hybridText, entity_type: hybridType, limit: hybridLimit, rerank: isReranked }) => {
    const hybridDefinition = knownType(verbCall, hybridType);
    const rerankOption = isReranked ? ", RERANK => 'true'" : '';
    const toolAnswer = await verbCall.answer(`SELECT * FROM HYBRID_SEARCH($1, $2${rerankOption}) LIMIT ${hybridRowsMax}`, [
      hybridDefinition.name,
      hybridText,
    ]);
    const hiddenRows = await hiddenItems(verbCall);
    const isRowShown = (hybridRow: HybridRow): boolean => !hiddenRows.has(hiddenKey(hybridDefinition.name, hybridRow));
    const hybridRows = await fuseHybridRows(verbCall, hybridDefinition.name, {
      fusedRows: shownRows(toolAnswer).filter(isRowShown),
      isShown: isRowShown,
      rerank: isReranked,
    });
    verbCall.note({ result: { row_count: Math.min(hybridRows.length, hybridLimit) } });
    return {
      ...queryReply(toolAnswer, 0),
      rows: hybridRows.slice(0, hybridLimit),
      row_count: Math.min(hybridRows.length, hybridLimit),
      truncated: false,
    };
  },
});

interface HybridFindings {
  readonly fusedRows: readonly HybridRow[];
  readonly isShown: (row: HybridRow) => boolean;
  readonly rerank: boolean;
}

async function fuseHybridRows(
  verbCall: VerbCall,
  hybridType: string,
  { fusedRows: foundRows, isShown: isRowShown, rerank: isReranked }: HybridFindings,
): Promise<HybridRow[]> {
  const nodeDistances = await nodesAroundSeeds(verbCall, foundRows.slice(0, hybridSeedsMax).map(nodeIdOf));
  const rowByNode = new Map(foundRows.map((hybridRow) => [nodeIdOf(hybridRow), hybridRow]));
  const otherRows = await rowsByNode(
    verbCall,
    hybridType,
    [...nodeDistances.keys()].filter((nodeId) => !rowByNode.has(nodeId)),
  );
  const allRows = new Map([...rowByNode, ...[...otherRows].filter(([, hybridRow]) => isRowShown(hybridRow))]);
  // A reranker's scores are of its own kind: its order counts.
  const rerankScores = new Map(
    isReranked ? foundRows.map((hybridRow, rank) => [nodeIdOf(hybridRow), 1 / (hybridRankConstant + rank + 1)]) : [],
  );
  const rankedNodes = [...nodeDistances]
    .filter(([nodeId]) => allRows.has(nodeId))
    .sort(([nodeA, hopsOfA], [nodeB, hopsOfB]) => hopsOfA - hopsOfB || compareRowBytes(nodeA, nodeB));
  const scoreByName = new Map(
    rankedNodes.slice(0, hybridRowsMax).map(([nodeId], rank) => [nodeId, 1 / (hybridRankConstant + rank + 1)]),
  );
  const scoredRows = [...allRows].map(([nodeId, hybridRow]) => {
    const ownScore = rerankScores.get(nodeId) ?? (typeof hybridRow['_rrf_score'] === 'number' ? hybridRow['_rrf_score'] : 0);
    return { ...hybridRow, _rrf_score: ownScore + (scoreByName.get(nodeId) ?? 0) };
  });
  return scoredRows.sort(
    (nodeA, nodeB) => nodeB._rrf_score - nodeA._rrf_score || compareRowBytes(hybridRowKey(nodeA), hybridRowKey(nodeB)),
  );
}

/** Names of nodes around these ones, with the fewest hops that lead to each. */
async function nodesAroundSeeds(verbCall: VerbCall, seedNodes: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const nodeDistances = new Map<string, number>();
  for (const seedNode of seedNodes) {
    const expandedRows = await verbCall.ask(
      `SELECT * FROM NETWORK_EXPAND($1, ${hybridHops}) LIMIT ${hybridRowsMax}`,
      [seedNode],
      'all',
    );
    for (const expandedRow of expandedRows) {
      const nodeId = String(expandedRow['nodeId']);
      nodeDistances.set(nodeId, Math.min(nodeDistances.get(nodeId) ?? hybridHops, Number(expandedRow['hop'])));
    }
  }
  return nodeDistances;
}

async function rowsByNode(
  verbCall: VerbCall,
  hybridType: string,
  nodeIds: readonly string[],
): Promise<ReadonlyMap<string, HybridRow>> {
  const rowByNode = new Map<string, HybridRow>();
  const hasId = verbCall.snapshot.catalog.type(hybridType)?.properties['id'] !== undefined;
  for (let firstNode = 0; firstNode < nodeIds.length; firstNode += hybridRowsMax) {
    const someNodes = nodeIds.slice(firstNode, firstNode + hybridRowsMax);
    const nodeMarks = someNodes.map((_, i) => `$${i + 1}`).join(', ');
    const nodeExpression = hasId ? 'COALESCE(CAST(id AS TEXT), _pk)' : '_pk';
    const toolAnswer = await verbCall.answer(
      `SELECT * FROM ${quote(hybridType)} WHERE ${nodeExpression} IN (${nodeMarks}) LIMIT ${hybridRowsMax}`,
      someNodes,
    );
    for (const nodeRow of shownRows(toolAnswer)) rowByNode.set(nodeIdOf(nodeRow), nodeRow);
  }
  return rowByNode;
}

/** The name under which edges know a row. */
function nodeIdOf(hybridRow: HybridRow): string {
  return textOf((hybridRow['id'] ?? hybridRow['_pk']) as string | null) ?? '';
}

function hybridRowKey(hybridRow: HybridRow): string {
  return String(hybridRow['_pk']);
}

function compareRowBytes(keyA: string, keyB: string): number {
  return Buffer.compare(Buffer.from(keyA), Buffer.from(keyB));
}
