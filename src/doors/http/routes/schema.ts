/**
 * Types and what becomes of their rows: /types, /types/:name/schema, /ontology/migrate, DELETE soft and hard.
 * Source: specification, "Other HTTP routes". Definitions are checked strictly: a misspelt attribute would change
 * what is stored.
 */
import { z } from 'zod';
import { didYouMean, ServiceError } from '../../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../../governance/gate-contract.ts';
import type { PropertyDefinition, TypeDefinition } from '../../../log/entries/entry.ts';
import { columnTypes, limits } from '../../../log/values/value.ts';
import type { EvolveType, GivenMeaning, RegisterType } from '../../../projections/command.ts';
import { record } from '../../checked.ts';
import { answered, route, type Route } from '../route.ts';
import { wantsSync } from '../headers.ts';
import { invoke } from '../invoke.ts';
import { flag, nanoseconds } from '../schemas.ts';

const typeName = z.enum(columnTypes as readonly [string, ...string[]]);

const property = z
  .union([
    typeName,
    z.strictObject({
      type: typeName,
      required: z.boolean().optional(),
      masked: z.boolean().optional(),
      indexed: z.boolean().optional(),
      subject: z.boolean().optional(),
      dims: z.int().min(1).max(limits.vectorDims).optional(),
      references: z.string().optional().describe('the type whose rows the values name'),
    }),
  ])
  .meta({ id: 'Property', description: 'a column type, or one with attributes' });

const properties = record(property, limits.columnsPerType);

const graphTrigger = z.strictObject({ link_type: z.string(), src_field: z.string(), dst_field: z.string() });

const guard = {
  protected: z.boolean().optional().describe('rows are shown for a reason (break-glass) only'),
  access_scope: z.boolean().optional().describe('rows are shown under a reference to a cleared scope only'),
};

/** What rows of the type are, for whoever looks for things by that. */
const meaning = {
  edge: z
    .strictObject({ from: z.string(), to: z.string() })
    .nullable()
    .optional()
    .describe('rows are edges: the properties that name the two ends'),
  role: z.string().nullable().optional().describe('what rows are, such as payment or sighting'),
  identifier: z
    .array(z.string())
    .max(limits.columnsPerType)
    .nullable()
    .optional()
    .describe('properties that name what a row is about, beside its key'),
  language: z.string().nullable().optional().describe('of its texts: a BCP 47 tag'),
};

const typeBody = z
  .strictObject({
    name: z.string(),
    properties: properties.optional().describe('absent: an open type, whose columns are inferred on write'),
    primary_key: z.string().nullable().optional(),
    graph_triggers: z.array(graphTrigger).max(64).optional(),
    open: z.boolean().optional().describe('true: columns beyond the declared ones are inferred on write'),
    ...guard,
    ...meaning,
    ontology_version: z.int().optional().describe('ignored'),
  })
  .meta({ id: 'TypeBody' });

type TypeBody = z.infer<typeof typeBody>;
type Guard = Pick<TypeBody, 'protected' | 'access_scope'>;
type Meaning = Pick<TypeBody, keyof typeof meaning>;

const typeReply = z
  .object({
    name: z.string(),
    properties: z.record(
      z.string(),
      z.object({
        type: z.string(),
        required: z.boolean(),
        masked: z.boolean(),
        indexed: z.boolean(),
        subject: z.boolean(),
        dims: z.int().optional(),
        references: z.string().optional(),
      }),
    ),
    primary_key: z.string().nullable(),
    open: z.boolean(),
    graph_triggers: z.array(graphTrigger),
    protected: z.boolean(),
    access_scope: z.boolean(),
    edge: z.object({ from: z.string(), to: z.string() }).optional(),
    role: z.string().optional(),
    identifier: z.array(z.string()).optional(),
    language: z.string().optional(),
    ontology_version: z.int(),
  })
  .meta({ id: 'Type' });

const changedType = typeReply.extend({ changed: z.boolean() }).meta({ id: 'ChangedType' });

const deletion = z.object({
  type: z.string(),
  id: z.string(),
  deleted: z.enum(['soft', 'hard']),
  system_from: nanoseconds,
  durability: z.enum(['synced', 'buffered']),
});

const nameParams = z.object({ name: z.string() });
const reading = { access: 'token', action: 'inspect', bucket: 'read' } as const;
const changing = { access: 'token', action: 'schema', bucket: 'write' } as const;

export const schemaRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/types',
    ...reading,
    summary: 'List types',
    tags: ['schema'],
    replies: { 200: z.object({ types: z.array(typeReply), ontology_version: z.int() }) },
    run: async (invocation) => {
      const { catalog, protection } = invocation.snapshot();
      const types = catalog.types().map((type) => shown(type, protection(type.name)));
      invocation.describe({ rowCount: types.length });
      return { types, ontology_version: catalog.ontologyVersion };
    },
  }),

  route({
    method: 'GET',
    path: '/types/:name',
    ...reading,
    summary: 'Show a type',
    tags: ['schema'],
    params: nameParams,
    replies: { 200: typeReply },
    example: { params: { name: 'a type' } },
    run: async (invocation, { params }) => {
      invocation.describe({ objectType: params.name, rowCount: 1 });
      return shownBy(invocation, params.name);
    },
  }),

  route({
    method: 'POST',
    path: '/types',
    ...changing,
    summary: 'Register a type',
    tags: ['schema'],
    body: typeBody,
    replies: { 200: changedType.describe('it stood so already'), 201: changedType },
    example: { body: { name: 'Fresh', properties: { a: 'string' } } },
    run: async (invocation, { body, request }) => {
      invocation.describe({ objectType: body.name });
      const steps = registrations(body);
      const command = steps.length === 1 ? steps[0]! : ({ kind: 'migrate-types', steps } as const);
      const { changed } = await invocation.submit(command, { sync: wantsSync(request) });
      return answered(changed ? 201 : 200, { ...shownBy(invocation, body.name), changed });
    },
  }),

  route({
    method: 'POST',
    path: '/types/:name/schema',
    ...changing,
    summary: 'Add columns to a type, or widen them; say what its rows are',
    tags: ['schema'],
    params: nameParams,
    body: z.strictObject({ properties: properties.optional(), ...guard, ...meaning }),
    replies: { 200: changedType },
    example: { params: { name: 'a type' }, body: { properties: { more: 'string' } } },
    run: async (invocation, { params: { name }, body, request }) => {
      invocation.describe({ objectType: name });
      const command = evolution(name, body.properties ?? {}, body);
      const { changed } = await invocation.submit(command, { sync: wantsSync(request) });
      return { ...shownBy(invocation, name), changed };
    },
  }),

  route({
    method: 'POST',
    path: '/ontology/migrate',
    ...changing,
    summary: 'Register or evolve several types',
    description: 'In the order given, all of them or none: one that is refused leaves everything as it was.',
    tags: ['schema'],
    body: z.strictObject({ types: z.array(typeBody).min(1).max(1000) }),
    replies: { 200: z.object({ types: z.array(changedType), ontology_version: z.int() }) },
    example: { body: { types: [{ name: 'Fresh2', properties: { a: { type: 'string' } } }] } },
    run: async (invocation, { body, request }) => {
      const bodies = body.types;
      const steps = stepsOf(bodies, invocation);
      const { ids } = await invocation.submit({ kind: 'migrate-types', steps }, { sync: wantsSync(request) });
      const types = bodies.map(({ name }) => ({ ...shownBy(invocation, name), changed: ids.includes(name) }));
      return { types, ontology_version: invocation.snapshot().catalog.ontologyVersion };
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
    replies: { 200: deletion },
    example: { params: { name: 'a type', id: 'another row' } },
    handle: ({ params, query, request, context }) => {
      const { name, id } = params;
      const { hard, purpose } = query;
      return invoke(context, request, hard ? 'remove' : 'delete', purpose, async (invocation) => {
        invocation.describe({ objectType: name });
        const command = { kind: hard ? 'remove-rows' : 'delete-rows', type: name, keys: [id] } as const;
        const outcome = await invocation.submit(command, { sync: wantsSync(request) });
        const [refused] = outcome.errors;
        if (refused?.code === 'REL_CONFLICT') throw new ServiceError('REL_CONFLICT', refused.detail);
        if (outcome.accepted === 0) throw new ServiceError('REL_NOT_FOUND', 'no such row');
        invocation.describe({ rowCount: outcome.accepted });
        const deleted = hard ? 'hard' : 'soft';
        return { type: name, id, deleted, system_from: outcome.systemFrom, durability: outcome.durability };
      });
    },
  }),
];

/** Registers what is unknown, evolves what is known; a name that comes again is known by then. */
function stepsOf(bodies: readonly TypeBody[], invocation: Invocation): (RegisterType | EvolveType)[] {
  const { catalog } = invocation.snapshot();
  const keys = new Map<string, string | null>();
  return bodies.flatMap((body) => {
    const { name, primary_key: primaryKey } = body;
    invocation.describe({ objectType: name });
    const known = keys.has(name) ? keys.get(name)! : catalog.type(name)?.primaryKey;
    if (known === undefined) {
      keys.set(name, primaryKey ?? null);
      return registrations(body);
    }
    if (primaryKey !== undefined && primaryKey !== known) {
      throw new ServiceError('REL_CONFLICT', `the primary key of ${name} can't be changed`);
    }
    const says = [body.protected, body.access_scope, ...Object.values(stated(body))].some((each) => each !== undefined);
    return body.properties === undefined && !says ? [] : [evolution(name, body.properties ?? {}, body)];
  });
}

/** An open type with columns, as GET shows one, is registered open and then given its columns. */
function registrations(body: TypeBody): (RegisterType | EvolveType)[] {
  const { name, open, properties: columns } = body;
  return open === true && columns !== undefined ? [registration(body), evolution(name, columns, {})] : [registration(body)];
}

function evolution(name: string, columns: z.infer<typeof properties>, asked: Guard & Meaning): EvolveType {
  const guarded = {
    ...(asked.protected !== undefined && { protected: asked.protected }),
    ...(asked.access_scope !== undefined && { accessScope: asked.access_scope }),
  };
  return { kind: 'evolve-type', name, properties: definitions(columns), guard: guarded, meaning: stated(asked) };
}

const stated = ({ edge, role, identifier, language }: Meaning): GivenMeaning => ({
  ...(edge !== undefined && { edge }),
  ...(role !== undefined && { role }),
  ...(identifier !== undefined && { identifier }),
  ...(language !== undefined && { language }),
});

function registration(body: TypeBody): RegisterType {
  return {
    kind: 'register-type',
    name: body.name,
    properties: body.properties === undefined || body.open === true ? null : definitions(body.properties),
    primaryKey: body.primary_key ?? null,
    graphTriggers: (body.graph_triggers ?? []).map((trigger) => ({
      linkType: trigger.link_type,
      sourceField: trigger.src_field,
      targetField: trigger.dst_field,
    })),
    guard: { protected: body.protected ?? false, accessScope: body.access_scope ?? false },
    meaning: stated(body),
  };
}

function definitions(given: z.infer<typeof properties>): Record<string, PropertyDefinition> {
  const made: Record<string, PropertyDefinition> = {};
  for (const [name, value] of Object.entries(given)) {
    const attributes = typeof value === 'string' ? { type: value } : value;
    made[name] = {
      type: attributes.type as PropertyDefinition['type'],
      required: attributes.required ?? false,
      masked: attributes.masked ?? false,
      indexed: attributes.indexed ?? false,
      subject: attributes.subject ?? false,
      dims: attributes.dims ?? 0,
      ...(attributes.references !== undefined && { references: attributes.references }),
    };
  }
  return made;
}

export function definitionOf(invocation: Invocation, name: string): TypeDefinition {
  const { catalog, offers } = invocation.snapshot();
  const definition = catalog.type(name);
  if (definition === undefined) {
    const guess = didYouMean(
      name,
      catalog.types().flatMap((type) => (offers(type.name) ? type.name : [])),
    );
    const text = `the type ${JSON.stringify(name.slice(0, limits.identifierLength))} is not registered${guess}`;
    throw new ServiceError('REL_UNKNOWN_TYPE', text);
  }
  return definition;
}

function shownBy(invocation: Invocation, name: string): z.infer<typeof typeReply> {
  return shown(definitionOf(invocation, name), invocation.snapshot().protection(name));
}

/** With what guards its rows wherever they are read: edges are guarded as the rows are that wrote them. */
function shown(definition: TypeDefinition, effective: ReturnType<GovernedSnapshot['protection']>): z.infer<typeof typeReply> {
  const { edge, role, identifier, language } = definition;
  const shownProperties: z.infer<typeof typeReply>['properties'] = {};
  for (const [name, { dims, ...stated }] of Object.entries(definition.properties)) {
    const attributes = { ...stated, masked: stated.masked || effective.masked.has(name) };
    shownProperties[name] = dims === 0 ? attributes : { ...attributes, dims };
  }
  return {
    name: definition.name,
    properties: shownProperties,
    primary_key: definition.primaryKey,
    open: definition.open,
    graph_triggers: definition.graphTriggers.map((trigger) => ({
      link_type: trigger.linkType,
      src_field: trigger.sourceField,
      dst_field: trigger.targetField,
    })),
    protected: effective.protected,
    access_scope: effective.accessScope,
    ...(edge && { edge }),
    ...(role !== undefined && { role }),
    ...(identifier && { identifier: [...identifier] }),
    ...(language !== undefined && { language }),
    ontology_version: definition.ontologyVersion,
  };
}
