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

const memoryEdge = z.object({
  from_id: itemId,
  to_id: itemId,
  relation: z.string().min(1).max(128).describe('what from is to to, such as caused_by or part_of: the name of a link type'),
});

type MemoryEdge = z.output<typeof memoryEdge>;

const associatedEdge = z.object({
  edge_id: z.string(),
  from_id: z.string(),
  to_id: z.string(),
  relation: z.string(),
  valid_from: nanosecondsOut,
});

export const associate = verb({
  name: 'associate',
  description: 'Connect two memories, or any two things with an id, by a named relation.',
  input: memoryEdge,
  output: associatedEdge,
  action: 'ingest',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'POST', url: '/memory/associate' }],
  tool: { title: 'Associate', readOnly: false, idempotent: true },
  example: { from_id: 'a memory', to_id: 'another memory', relation: 'supports' },
  run: async (verbCall, edgeInput) => {
    const [missingEndpoints] = await missingEndpointIds(verbCall, [edgeInput.from_id, edgeInput.to_id]);
    if (missingEndpoints !== undefined) throw unknownEndpoint(missingEndpoints);
    const edgeKey = memoryEdgeId(edgeInput);
    verbCall.note({ result: { edge_id: edgeKey } });
    const { systemFrom: edgeSystemFrom } = await verbCall.commit([memoryEdgeStep(verbCall, [edgeInput])]);
    return { edge_id: edgeKey, ...edgeInput, valid_from: edgeSystemFrom };
  },
});

export const associateBatch = verb({
  name: 'associate_batch',
  description: 'Connect many pairs at once. Those that are refused are listed with their reasons; all others are made.',
  input: z.object({ items: z.array(z.unknown()).min(1).max(1_000).describe('each as associate takes it') }),
  output: z.object({
    associated: z.int(),
    results: z.array(
      z.union([associatedEdge, z.object({ index: z.int(), error: z.object({ code: z.string(), detail: z.string() }) })]),
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
  run: async (verbCall, { items: edgeItems }) => {
    const edgeErrors: { index: number; code: string; detail: string }[] = [];
    const edgesById = new Map<string, MemoryEdge>();
    const attemptEdge = <T>(edgeIndex: number, makeEdge: () => T): T | null => {
      try {
        return makeEdge();
      } catch (edgeError) {
        if (!(edgeError instanceof ServiceError)) throw edgeError;
        edgeErrors.push({ index: edgeIndex, code: edgeError.code, detail: edgeError.message });
        return null;
      }
    };
    const memoryEdges = edgeItems.map((givenEdge, edgeIndex) =>
      attemptEdge(edgeIndex, () => {
        const readEdge = readInput(memoryEdge, givenEdge);
        checkEdgeRelation(verbCall, readEdge.relation);
        return readEdge;
      }),
    );
    const missingEndpoints = new Set(
      await missingEndpointIds(
        verbCall,
        memoryEdges.flatMap((checkedEdge) => (checkedEdge === null ? [] : [checkedEdge.from_id, checkedEdge.to_id])),
      ),
    );
    const edgeIds = memoryEdges.map((checkedEdge, edgeIndex) => {
      if (checkedEdge === null) return null;
      return attemptEdge(edgeIndex, () => {
        for (const edgeKey of [checkedEdge.from_id, checkedEdge.to_id])
          if (missingEndpoints.has(edgeKey)) throw unknownEndpoint(edgeKey);
        edgesById.set(memoryEdgeId(checkedEdge), checkedEdge);
        return memoryEdgeId(checkedEdge);
      });
    });
    edgeErrors.sort((errorA, errorB) => errorA.index - errorB.index);
    const edgesByRelation = groupBy(edgesById.values(), ({ relation }) => relation);
    verbCall.note({ result: { edge_ids: [...edgesById.keys()], refused: edgeErrors.length } });
    const { systemFrom: edgeSystemFrom } = await verbCall.commit(
      [...edgesByRelation.values()].map((edges) => memoryEdgeStep(verbCall, edges)),
    );
    return {
      associated: edgesById.size,
      results: edgeIds.map((edgeKey, edgeIndex) => {
        if (edgeKey !== null) return { edge_id: edgeKey, ...edgesById.get(edgeKey)!, valid_from: edgeSystemFrom };
        const { code: edgeErrorCode, detail: edgeErrorDetail } = edgeErrors.find(
          (checkedEdge) => checkedEdge.index === edgeIndex,
        )!;
        return { index: edgeIndex, error: { code: edgeErrorCode, detail: edgeErrorDetail } };
      }),
      errors: edgeErrors,
    };
  },
});

const unknownEndpoint = (endpointId: string): ServiceError =>
  new ServiceError('REL_NOT_FOUND', `there is no row with the id ${JSON.stringify(endpointId)}`);

const endpointIdsAtOnce = 500;

/** Those of which the caller sees neither a row, superseded ones included, nor an edge. Memories are looked at first: nearly always that is all. */
async function missingEndpointIds(verbCall: VerbCall, endpointIds: readonly string[]): Promise<readonly string[]> {
  const unseenIds = new Set(endpointIds);
  const { catalog: typeCatalog } = verbCall.snapshot;
  const readableTypes = typeCatalog.types().filter(({ name: typeName }) => verbCall.snapshot.offers(typeName));
  for (const { name, properties: typeProperties } of readableTypes.sort(
    (typeA, typeB) => Number(typeB.name === memoryItem) - Number(typeA.name === memoryItem),
  )) {
    const endpointColumns = ['id', 'from_id', 'to_id'].filter((idColumn) => typeProperties[idColumn]?.type === 'string');
    const idColumns = ['_pk', ...endpointColumns];
    const unseenList = [...unseenIds];
    for (let firstSought = 0; firstSought < unseenList.length; firstSought += endpointIdsAtOnce) {
      const soughtIds = unseenList.slice(firstSought, firstSought + endpointIdsAtOnce);
      const soughtMarks = soughtIds.map((_, i) => `$${i + 1}`).join(', ');
      const idWhere = idColumns.map((idColumn) => `${quote(idColumn)} IN (${soughtMarks})`).join(' OR ');
      const endpointRows = await verbCall.ask(
        `SELECT ${idColumns.map(quote).join(', ')} FROM ${quote(name)} WHERE ${idWhere}`,
        soughtIds,
        'all',
      );
      for (const endpointRow of endpointRows) for (const column of idColumns) unseenIds.delete(String(endpointRow[column]));
    }
    if (unseenIds.size === 0) break;
  }
  return [...unseenIds];
}

/** `memoryEdges` are of one relation. */
function memoryEdgeStep(verbCall: VerbCall, memoryEdges: readonly MemoryEdge[]): PutRows {
  const { relation: edgeRelation } = memoryEdges[0]!;
  checkEdgeRelation(verbCall, edgeRelation);
  const relationType = verbCall.snapshot.catalog.type(edgeRelation) ?? {
    name: edgeRelation,
    properties: {},
    open: true,
    primaryKey: null,
    graphTriggers: [],
    ontologyVersion: 0,
  };
  const edgeRows = memoryEdges.map((memoryEdgeOf) => ({
    _pk: memoryEdgeId(memoryEdgeOf),
    from_id: memoryEdgeOf.from_id,
    to_id: memoryEdgeOf.to_id,
  }));
  return putting({ definition: relationType, rows: edgeRows, provenance: verbCall.provenance(), createType: true });
}

function checkEdgeRelation(verbCall: VerbCall, edgeRelation: string): void {
  checkIdentifier(edgeRelation, 'relation');
  const relationType = verbCall.snapshot.catalog.type(edgeRelation);
  if (relationType === undefined) return;
  if (relationType.properties['from_id']?.type === 'string' && relationType.properties['to_id']?.type === 'string') return;
  throw new ServiceError('REL_INVALID', `relation: ${JSON.stringify(edgeRelation)} is a type whose rows are no edges`);
}

function memoryEdgeId({ from_id, to_id, relation: edgeRelation }: MemoryEdge): string {
  return createHash('sha256')
    .update(JSON.stringify([edgeRelation, from_id, to_id]))
    .digest('hex')
    .slice(0, 32);
}
