/**
 * Types and what becomes of their rows: /types, /types/:name/schema, /ontology/migrate, DELETE soft and hard.
 * Source: specification, "Other HTTP routes".
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import { namedViews } from '../../../planner/languages/view-source.ts';
import type { EvolveType, RegisterType } from '../../../projections/command.ts';
import {
  evolution,
  guard,
  meaning,
  properties,
  registrations,
  describeType,
  typeView,
  meaningOf,
  typeBody,
  type TypeBody,
  typeReply,
} from '../../shared/type-body.ts';
import { reply, route, type Route } from '../route.ts';
import { wantsSync } from '../request-headers.ts';
import { invoke } from '../invoke.ts';
import { flag, nanoseconds } from '../schemas.ts';

const changedType = typeReply.extend({ changed: z.boolean() }).meta({ id: 'ChangedType' });

const deletedRowReply = z.object({
  type: z.string(),
  id: z.string(),
  deleted: z.enum(['soft', 'hard']),
  system_from: nanoseconds,
  durability: z.enum(['synced', 'buffered']),
});

const viewReply = z
  .object({ name: z.string(), sql: z.string(), refresh_secs: z.int().describe('0: it is asked anew each time') })
  .meta({ id: 'View' });

const typeNameParams = z.object({ name: z.string() });
const schemaReading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const schemaChanging = { access: 'token', action: 'schema', bucket: 'write' } as const;

export const schemaRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/types',
    ...schemaReading,
    summary: 'List types and views',
    tags: ['schema'],
    replies: { 200: z.object({ types: z.array(typeReply), views: z.array(viewReply), ontology_version: z.int() }) },
    run: async (schemaInvocation) => {
      const schemaSnapshot = schemaInvocation.snapshot();
      const { catalog: typeCatalog, protection: typeProtection } = schemaSnapshot;
      const typeViews = typeCatalog.types().map((catalogType) => describeType(catalogType, typeProtection(catalogType.name)));
      const viewReplies = namedViews(schemaSnapshot).map(({ name: typeName, sql: viewSql, refreshSecs: viewRefreshSecs }) => ({
        name: typeName,
        sql: viewSql,
        refresh_secs: viewRefreshSecs,
      }));
      schemaInvocation.describe({ rowCount: typeViews.length });
      return { types: typeViews, views: viewReplies, ontology_version: typeCatalog.ontologyVersion };
    },
  }),

  route({
    method: 'GET',
    path: '/types/:name',
    ...schemaReading,
    summary: 'Show a type',
    tags: ['schema'],
    params: typeNameParams,
    replies: { 200: typeReply },
    example: { params: { name: 'a type' } },
    run: async (schemaInvocation, { params: typeParams }) => {
      schemaInvocation.describe({ objectType: typeParams.name, rowCount: 1 });
      return typeView(schemaInvocation, typeParams.name);
    },
  }),

  route({
    method: 'POST',
    path: '/types',
    ...schemaChanging,
    summary: 'Register a type',
    tags: ['schema'],
    body: typeBody,
    replies: { 200: changedType.describe('it stood so already'), 201: changedType },
    example: { body: { name: 'Fresh', properties: { a: 'string' } } },
    run: async (schemaInvocation, { body: typeFields, request: schemaRequest }) => {
      schemaInvocation.describe({ objectType: typeFields.name });
      const typeSteps = registrations(typeFields);
      const typeCommand = typeSteps.length === 1 ? typeSteps[0]! : ({ kind: 'migrate-types', steps: typeSteps } as const);
      const { changed: isTypeChanged } = await schemaInvocation.submit(typeCommand, { sync: wantsSync(schemaRequest) });
      return reply(isTypeChanged ? 201 : 200, { ...typeView(schemaInvocation, typeFields.name), changed: isTypeChanged });
    },
  }),

  route({
    method: 'POST',
    path: '/types/:name/schema',
    ...schemaChanging,
    summary: 'Add columns to a type, or widen them; say what its rows are',
    tags: ['schema'],
    params: typeNameParams,
    body: z.strictObject({ properties: properties.optional(), ...guard, ...meaning }),
    replies: { 200: changedType },
    example: { params: { name: 'a type' }, body: { properties: { more: 'string' } } },
    run: async (schemaInvocation, { params: { name: typeName }, body: typeFields, request: schemaRequest }) => {
      schemaInvocation.describe({ objectType: typeName });
      const typeCommand = evolution(typeName, typeFields.properties ?? {}, typeFields);
      const { changed: isTypeChanged } = await schemaInvocation.submit(typeCommand, { sync: wantsSync(schemaRequest) });
      return { ...typeView(schemaInvocation, typeName), changed: isTypeChanged };
    },
  }),

  route({
    method: 'POST',
    path: '/ontology/migrate',
    ...schemaChanging,
    summary: 'Register or evolve several types',
    description: 'In the order given, all of them or none: one that is refused leaves everything as it was.',
    tags: ['schema'],
    body: z.strictObject({ types: z.array(typeBody).min(1).max(1000) }),
    replies: { 200: z.object({ types: z.array(changedType), ontology_version: z.int() }) },
    example: { body: { types: [{ name: 'Fresh2', properties: { a: { type: 'string' } } }] } },
    run: async (schemaInvocation, { body: typeFields, request: schemaRequest }) => {
      const typeBodies = typeFields.types;
      const typeSteps = migrationSteps(typeBodies, schemaInvocation);
      const { ids: changedTypes } = await schemaInvocation.submit(
        { kind: 'migrate-types', steps: typeSteps },
        { sync: wantsSync(schemaRequest) },
      );
      const typeViews = typeBodies.map(({ name: typeName }) => ({
        ...typeView(schemaInvocation, typeName),
        changed: changedTypes.includes(typeName),
      }));
      return { types: typeViews, ontology_version: schemaInvocation.snapshot().catalog.ontologyVersion };
    },
  }),

  route({
    method: 'DELETE',
    path: '/types/:name/:id',
    access: 'token',
    inTransaction: true,
    action: 'delete',
    bucket: 'write',
    summary: 'Delete a row: softly, keeping its history, or with hard=true every version of it',
    tags: ['schema'],
    params: z.object({ name: z.string(), id: z.string() }),
    query: z.object({ hard: flag, purpose: z.string().optional() }),
    replies: { 200: deletedRowReply },
    example: { params: { name: 'a type', id: 'another row' } },
    handle: ({ params: rowParams, query: deleteQuery, request: deleteRequest, context: httpContext }) => {
      const { name: typeName, id: deletedRowId } = rowParams;
      const { hard: isHardDelete, purpose: deletePurpose } = deleteQuery;
      return invoke(httpContext, deleteRequest, isHardDelete ? 'remove' : 'delete', deletePurpose, async (deleteInvocation) => {
        deleteInvocation.describe({ objectType: typeName });
        const deleteCommand = {
          kind: isHardDelete ? 'remove-rows' : 'delete-rows',
          type: typeName,
          keys: [deletedRowId],
        } as const;
        const deleteOutcome = await deleteInvocation.submit(deleteCommand, { sync: wantsSync(deleteRequest) });
        const [refusedDelete] = deleteOutcome.errors;
        if (refusedDelete?.code === 'REL_CONFLICT') throw new ServiceError('REL_CONFLICT', refusedDelete.detail);
        if (deleteOutcome.accepted === 0) throw new ServiceError('REL_NOT_FOUND', 'no such row');
        deleteInvocation.describe({ rowCount: deleteOutcome.accepted });
        const deletionKind = isHardDelete ? 'hard' : 'soft';
        return {
          type: typeName,
          id: deletedRowId,
          deleted: deletionKind,
          system_from: deleteOutcome.systemFrom,
          durability: deleteOutcome.durability,
        };
      });
    },
  }),
];

/** Registers unknown types, evolves known ones; a name that comes again counts as known. */
function migrationSteps(typeBodies: readonly TypeBody[], schemaInvocation: Invocation): (RegisterType | EvolveType)[] {
  const { catalog: typeCatalog } = schemaInvocation.snapshot();
  const primaryKeys = new Map<string, string | null>();
  return typeBodies.flatMap((typeFields) => {
    const { name: typeName, primary_key: statedPrimaryKey } = typeFields;
    schemaInvocation.describe({ objectType: typeName });
    const knownPrimaryKey = primaryKeys.has(typeName) ? primaryKeys.get(typeName)! : typeCatalog.type(typeName)?.primaryKey;
    if (knownPrimaryKey === undefined) {
      primaryKeys.set(typeName, statedPrimaryKey ?? null);
      return registrations(typeFields);
    }
    if (statedPrimaryKey !== undefined && statedPrimaryKey !== knownPrimaryKey) {
      throw new ServiceError('REL_CONFLICT', `the primary key of ${typeName} can't be changed`);
    }
    const statesMeaning = [typeFields.protected, typeFields.access_scope, ...Object.values(meaningOf(typeFields))].some(
      (statedMeaning) => statedMeaning !== undefined,
    );
    return typeFields.properties === undefined && !statesMeaning
      ? []
      : [evolution(typeName, typeFields.properties ?? {}, typeFields)];
  });
}
