/**
 * associate: memories, or anything else with an id, as ends of an edge. An edge is a row of the type that the relation names, in
 * the shape of edges that graph triggers write, so that all readers of edges read these. The same edge again is the same row.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { checkIdentifier } from '../../../log/values/value.ts';
import type { PutRows } from '../../../projections/command.ts';
import { readInput } from '../call-verb.ts';
import { groupBy, putting, quote } from '../verb-rows.ts';
import type { VerbCall } from '../verb-call.ts';
import { nanosecondsOut, verb } from '../verb.ts';
import { itemId, memoryItem } from './memory-items.ts';

const edge = z.object({
  from_id: itemId,
  to_id: itemId,
  relation: z.string().min(1).max(128).describe('what from is to to, such as caused_by or part_of: the name of a link type'),
});

type Edge = z.output<typeof edge>;

const associated = z.object({
  edge_id: z.string(),
  from_id: z.string(),
  to_id: z.string(),
  relation: z.string(),
  valid_from: nanosecondsOut,
});

export const associate = verb({
  name: 'associate',
  description: 'Connect two memories, or any two things with an id, by a named relation.',
  input: edge,
  output: associated,
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/associate' }],
  tool: { title: 'Associate', readOnly: false, idempotent: true },
  example: { from_id: 'a memory', to_id: 'another memory', relation: 'supports' },
  run: async (verbCall, input) => {
    const [missing] = await missingIds(verbCall, [input.from_id, input.to_id]);
    if (missing !== undefined) throw nothingOf(missing);
    const id = edgeId(input);
    verbCall.note({ result: { edge_id: id } });
    const { systemFrom } = await verbCall.commit([edgeStep(verbCall, [input])]);
    return { edge_id: id, ...input, valid_from: systemFrom };
  },
});

export const associateBatch = verb({
  name: 'associate_batch',
  description: 'Connect many pairs at once. Those that are refused are listed with their reasons; all others are made.',
  input: z.object({ items: z.array(z.unknown()).min(1).max(1_000).describe('each as associate takes it') }),
  output: z.object({
    associated: z.int(),
    results: z.array(
      z.union([associated, z.object({ index: z.int(), error: z.object({ code: z.string(), detail: z.string() }) })]),
    ),
    errors: z.array(z.object({ index: z.int(), code: z.string(), detail: z.string() })),
  }),
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/associate/batch' }],
  tool: { title: 'Associate many', readOnly: false, idempotent: true },
  example: { items: [{ from_id: 'a memory', to_id: 'another memory', relation: 'supports' }] },
  run: async (verbCall, { items }) => {
    const errors: { index: number; code: string; detail: string }[] = [];
    const good = new Map<string, Edge>();
    const attempt = <T>(index: number, make: () => T): T | null => {
      try {
        return make();
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        errors.push({ index, code: error.code, detail: error.message });
        return null;
      }
    };
    const edges = items.map((given, index) =>
      attempt(index, () => {
        const read = readInput(edge, given);
        checkRelation(verbCall, read.relation);
        return read;
      }),
    );
    const missing = new Set(
      await missingIds(
        verbCall,
        edges.flatMap((each) => (each === null ? [] : [each.from_id, each.to_id])),
      ),
    );
    const ids = edges.map((each, index) => {
      if (each === null) return null;
      return attempt(index, () => {
        for (const id of [each.from_id, each.to_id]) if (missing.has(id)) throw nothingOf(id);
        good.set(edgeId(each), each);
        return edgeId(each);
      });
    });
    errors.sort((a, b) => a.index - b.index);
    const byRelation = groupBy(good.values(), ({ relation }) => relation);
    verbCall.note({ result: { edge_ids: [...good.keys()], refused: errors.length } });
    const { systemFrom } = await verbCall.commit([...byRelation.values()].map((edges) => edgeStep(verbCall, edges)));
    return {
      associated: good.size,
      results: ids.map((id, index) => {
        if (id !== null) return { edge_id: id, ...good.get(id)!, valid_from: systemFrom };
        const { code, detail } = errors.find((each) => each.index === index)!;
        return { index, error: { code, detail } };
      }),
      errors,
    };
  },
});

const nothingOf = (id: string): ServiceError =>
  new ServiceError('REL_NOT_FOUND', `there is no row with the id ${JSON.stringify(id)}`);

const idsAtOnce = 500;

/** Those of which the caller sees neither a row, superseded ones included, nor an edge. Memories are looked at first: nearly always that is all. */
async function missingIds(verbCall: VerbCall, ids: readonly string[]): Promise<readonly string[]> {
  const left = new Set(ids);
  const { catalog } = verbCall.snapshot;
  const types = catalog.types().filter(({ name }) => verbCall.snapshot.offers(name));
  for (const { name, properties } of types.sort((a, b) => Number(b.name === memoryItem) - Number(a.name === memoryItem))) {
    const named = ['id', 'from_id', 'to_id'].filter((column) => properties[column]?.type === 'string');
    const columns = ['_pk', ...named];
    const some = [...left];
    for (let first = 0; first < some.length; first += idsAtOnce) {
      const sought = some.slice(first, first + idsAtOnce);
      const marks = sought.map((_, i) => `$${i + 1}`).join(', ');
      const where = columns.map((column) => `${quote(column)} IN (${marks})`).join(' OR ');
      const rows = await verbCall.ask(
        `SELECT ${columns.map(quote).join(', ')} FROM ${quote(name)} WHERE ${where}`,
        sought,
        'all',
      );
      for (const row of rows) for (const column of columns) left.delete(String(row[column]));
    }
    if (left.size === 0) break;
  }
  return [...left];
}

/** `edges` are of one relation. */
function edgeStep(verbCall: VerbCall, edges: readonly Edge[]): PutRows {
  const { relation } = edges[0]!;
  checkRelation(verbCall, relation);
  const definition = verbCall.snapshot.catalog.type(relation) ?? {
    name: relation,
    properties: {},
    open: true,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 0,
  };
  const rows = edges.map((each) => ({ _pk: edgeId(each), from_id: each.from_id, to_id: each.to_id }));
  return putting({ definition, rows, provenance: verbCall.provenance(), createType: true });
}

function checkRelation(verbCall: VerbCall, relation: string): void {
  checkIdentifier(relation, 'relation');
  const known = verbCall.snapshot.catalog.type(relation);
  if (known === undefined) return;
  if (known.properties['from_id']?.type === 'string' && known.properties['to_id']?.type === 'string') return;
  throw new ServiceError('REL_INVALID', `relation: ${JSON.stringify(relation)} is a type whose rows are no edges`);
}

function edgeId({ from_id, to_id, relation }: Edge): string {
  return createHash('sha256')
    .update(JSON.stringify([relation, from_id, to_id]))
    .digest('hex')
    .slice(0, 32);
}
