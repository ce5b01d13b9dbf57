/** Tools over the graph of the snapshot, each a table function. Source: specification, "Tool protocol (MCP)". */
import { nodeMetrics } from '../../planner/graph/algorithms/node-metric.ts';
import { z } from 'zod';
import type { Literal } from '../../planner/syntax/statement.ts';
import { queryReply, answerMembers } from './query.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

const common = {
  output: z.object(answerMembers) as unknown as z.ZodType,
  action: 'search',
  units: 3,
  purpose: 'required',
  bucket: 'read',
} as const;

async function rowsOf(verbCall: VerbCall, call: string, values: readonly Literal[], limit: number) {
  const toolAnswer = await verbCall.answer(`SELECT * FROM ${call} LIMIT ${limit}`, values, 'all');
  verbCall.note({ result: { row_count: toolAnswer.rowCount } });
  return queryReply(toolAnswer);
}

const ofType = z.string().min(1).describe('the type whose rows are the nodes, or a link type');
const limit = z.int().min(1).max(1_000).default(100);

const ranked = z.array(z.object({ nodeId: z.string(), score: z.number() }));
type Ranked = z.infer<typeof ranked>[number];

export const pathsBetween = verb({
  ...common,
  name: 'paths_between',
  description: 'Every simple path between two things, shortest first: one row for each edge of a path.',
  input: z.object({ from: z.string().min(1), to: z.string().min(1), max_hops: z.int().min(1).max(10).default(5), limit }),
  tool: { title: 'Paths', readOnly: true },
  example: { from: 'a memory', to: 'another memory' },
  run: (verbCall, { from, to, max_hops: hops, limit: most }) =>
    rowsOf(verbCall, 'PATHS_BETWEEN($1, $2, MAX_HOPS => $3)', [from, to, BigInt(hops)], most),
});

export const detectCommunities = verb({
  ...common,
  name: 'detect_communities',
  description: 'Which nodes of a type belong together.',
  input: z.object({ entity_type: ofType, algo: z.enum(['louvain', 'label_propagation']).default('louvain'), limit }),
  tool: { title: 'Communities', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: type, algo, limit: most }) =>
    rowsOf(verbCall, 'GRAPH_COMMUNITY($1, ALGO => $2)', [type, algo], most),
});

export const rankKeyNodes = verb({
  ...common,
  name: 'rank_key_nodes',
  description: 'Which nodes of a type matter most in the graph.',
  input: z.object({
    entity_type: ofType,
    metric: z.enum(nodeMetrics).default('pagerank'),
    limit,
  }),
  tool: { title: 'Key nodes', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: type, metric, limit: most }) =>
    rowsOf(verbCall, 'GRAPH_NODE_METRIC($1, METRIC => $2)', [type, metric], most),
});

export const findScc = verb({
  ...common,
  name: 'find_scc',
  description: 'Which nodes of a type can reach each other, both ways.',
  input: z.object({ entity_type: ofType, limit }),
  tool: { title: 'Strong components', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: type, limit: most }) => rowsOf(verbCall, 'GRAPH_SCC($1)', [type], most),
});

export const predictLinks = verb({
  ...common,
  name: 'predict_links',
  description: 'Which two nodes of a type are likely to be joined, and are not yet.',
  input: z.object({
    entity_type: ofType,
    method: z
      .enum(['common_neighbours', 'jaccard', 'adamic_adar', 'resource_allocation', 'preferential_attachment'])
      .default('common_neighbours'),
    limit,
  }),
  tool: { title: 'Likely links', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: type, method, limit: most }) =>
    rowsOf(verbCall, 'LINK_PREDICT($1, METHOD => $2)', [type, method], most),
});

export const hubAuthority = verb({
  ...common,
  name: 'hub_authority',
  description: 'Which nodes of a type lead to what matters, and which of them are led to (HITS): the best of both.',
  input: z.object({ entity_type: ofType, limit }),
  output: z.object({ hubs: ranked, authorities: ranked }),
  tool: { title: 'Hubs and authorities', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: async (verbCall, { entity_type: type, limit: most }) => {
    const best = async (metric: string): Promise<Ranked[]> => {
      const rows = await verbCall.ask(`SELECT * FROM GRAPH_NODE_METRIC($1, METRIC => $2) LIMIT ${most}`, [type, metric], 'all');
      return rows.map((row) => ({ nodeId: String(row['nodeId']), score: Number(row['score']) }));
    };
    const hubsAndAuthorities = { hubs: await best('hub'), authorities: await best('authority') };
    verbCall.note({ result: { row_count: hubsAndAuthorities.hubs.length + hubsAndAuthorities.authorities.length } });
    return hubsAndAuthorities;
  },
});
