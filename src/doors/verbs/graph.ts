/** Tools over the graph of the snapshot, each a table function. Source: specification, "Tool protocol (MCP)". */
import { nodeMetrics } from '../../planner/graph/algorithms/node-metric.ts';
import { z } from 'zod';
import type { Literal } from '../../planner/syntax/statement.ts';
import { queryReply, answerMembers } from './query.ts';
import type { VerbCall } from './verb-call.ts';
import { verb } from './verb.ts';

const graphVerb = {
  output: z.object(answerMembers) as unknown as z.ZodType,
  action: 'search',
  units: 3,
  purpose: 'required',
  bucket: 'read',
} as const;

async function askGraphFunction(verbCall: VerbCall, graphCall: string, graphArguments: readonly Literal[], rowLimit: number) {
  const toolAnswer = await verbCall.answer(`SELECT * FROM ${graphCall} LIMIT ${rowLimit}`, graphArguments, 'all');
  verbCall.note({ result: { row_count: toolAnswer.rowCount } });
  return queryReply(toolAnswer);
}

const graphTypeField = z.string().min(1).describe('the type whose rows are the nodes, or a link type');
const graphRowLimit = z.int().min(1).max(1_000).default(100);

const rankedNodes = z.array(z.object({ nodeId: z.string(), score: z.number() }));
type RankedNode = z.infer<typeof rankedNodes>[number];

export const pathsBetween = verb({
  ...graphVerb,
  name: 'paths_between',
  description: 'Every simple path between two things, shortest first: one row for each edge of a path.',
  input: z.object({
    from: z.string().min(1),
    to: z.string().min(1),
    max_hops: z.int().min(1).max(10).default(5),
    limit: graphRowLimit,
  }),
  tool: { title: 'Paths', readOnly: true },
  example: { from: 'a memory', to: 'another memory' },
  run: (verbCall, { from: pathStart, to: pathEnd, max_hops: hopCount, limit: rowLimit }) =>
    askGraphFunction(verbCall, 'PATHS_BETWEEN($1, $2, MAX_HOPS => $3)', [pathStart, pathEnd, BigInt(hopCount)], rowLimit),
});

export const detectCommunities = verb({
  ...graphVerb,
  name: 'detect_communities',
  description: 'Which nodes of a type belong together.',
  input: z.object({
    entity_type: graphTypeField,
    algo: z.enum(['louvain', 'label_propagation']).default('louvain'),
    limit: graphRowLimit,
  }),
  tool: { title: 'Communities', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: nodeType, algo: communityAlgorithm, limit: rowLimit }) =>
    askGraphFunction(verbCall, 'GRAPH_COMMUNITY($1, ALGO => $2)', [nodeType, communityAlgorithm], rowLimit),
});

export const rankKeyNodes = verb({
  ...graphVerb,
  name: 'rank_key_nodes',
  description: 'Which nodes of a type matter most in the graph.',
  input: z.object({
    entity_type: graphTypeField,
    metric: z.enum(nodeMetrics).default('pagerank'),
    limit: graphRowLimit,
  }),
  tool: { title: 'Key nodes', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: nodeType, metric: nodeMetric, limit: rowLimit }) =>
    askGraphFunction(verbCall, 'GRAPH_NODE_METRIC($1, METRIC => $2)', [nodeType, nodeMetric], rowLimit),
});

export const findScc = verb({
  ...graphVerb,
  name: 'find_scc',
  description: 'Which nodes of a type can reach each other, both ways.',
  input: z.object({ entity_type: graphTypeField, limit: graphRowLimit }),
  tool: { title: 'Strong components', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: nodeType, limit: rowLimit }) =>
    askGraphFunction(verbCall, 'GRAPH_SCC($1)', [nodeType], rowLimit),
});

export const predictLinks = verb({
  ...graphVerb,
  name: 'predict_links',
  description: 'Which two nodes of a type are likely to be joined, and are not yet.',
  input: z.object({
    entity_type: graphTypeField,
    method: z
      .enum(['common_neighbours', 'jaccard', 'adamic_adar', 'resource_allocation', 'preferential_attachment'])
      .default('common_neighbours'),
    limit: graphRowLimit,
  }),
  tool: { title: 'Likely links', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: (verbCall, { entity_type: nodeType, method: predictionMethod, limit: rowLimit }) =>
    askGraphFunction(verbCall, 'LINK_PREDICT($1, METHOD => $2)', [nodeType, predictionMethod], rowLimit),
});

export const hubAuthority = verb({
  ...graphVerb,
  name: 'hub_authority',
  description: 'Which nodes of a type lead to what matters, and which of them are led to (HITS): the best of both.',
  input: z.object({ entity_type: graphTypeField, limit: graphRowLimit }),
  output: z.object({ hubs: rankedNodes, authorities: rankedNodes }),
  tool: { title: 'Hubs and authorities', readOnly: true },
  example: { entity_type: 'MemoryItem' },
  run: async (verbCall, { entity_type: nodeType, limit: rowLimit }) => {
    const bestNodes = async (hitsMetric: string): Promise<RankedNode[]> => {
      const metricRows = await verbCall.ask(
        `SELECT * FROM GRAPH_NODE_METRIC($1, METRIC => $2) LIMIT ${rowLimit}`,
        [nodeType, hitsMetric],
        'all',
      );
      return metricRows.map((metricRow) => ({ nodeId: String(metricRow['nodeId']), score: Number(metricRow['score']) }));
    };
    const hubsAndAuthorities = { hubs: await bestNodes('hub'), authorities: await bestNodes('authority') };
    verbCall.note({ result: { row_count: hubsAndAuthorities.hubs.length + hubsAndAuthorities.authorities.length } });
    return hubsAndAuthorities;
  },
});
