/** Types as callers write and read them. Definitions are checked strictly: a misspelt attribute would be ignored silently. */
import { z } from 'zod';
import { didYouMean, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';
import { columnTypes, limits } from '../../log/values/value.ts';
import type { EvolveType, GivenMeaning, RegisterType } from '../../projections/command.ts';
import { record } from './schema-check.ts';

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
      identifier: z.string().optional().describe('the kind of identifier that the values are, such as phone'),
    }),
  ])
  .meta({ id: 'Property', description: 'a column type, or one with attributes' });

export const properties = record(property, limits.columnsPerType);

const graphTrigger = z.strictObject({ link_type: z.string(), src_field: z.string(), dst_field: z.string() });

export const guard = {
  protected: z.boolean().optional().describe('rows are shown for a reason (break-glass) only'),
  access_scope: z.boolean().optional().describe('rows are shown under a reference to a cleared scope only'),
};

/** The meaning of a type's rows, for functions that search by it. */
export const meaning = {
  edge: z
    .strictObject({ from: z.string(), to: z.string() })
    .nullable()
    .optional()
    .describe('rows are edges: the properties that name the two ends'),
  role: z
    .union([z.string(), z.strictObject({ name: z.string(), columns: record(z.string(), limits.columnsPerType).optional() })])
    .nullable()
    .optional()
    .describe(
      'what rows are, such as payment or sighting; columns: properties that stand for columns of the role by other names',
    ),
  identifier: z
    .array(z.string())
    .max(limits.columnsPerType)
    .nullable()
    .optional()
    .describe('properties that name what a row is about, beside its key'),
  language: z.string().nullable().optional().describe('of its texts: a BCP 47 tag'),
};

export const typeBody = z
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

export type TypeBody = z.infer<typeof typeBody>;
type Guard = Pick<TypeBody, 'protected' | 'access_scope'>;
type Meaning = Pick<TypeBody, keyof typeof meaning>;

export const typeReply = z
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
        identifier: z.string().optional(),
      }),
    ),
    primary_key: z.string().nullable(),
    open: z.boolean(),
    graph_triggers: z.array(graphTrigger),
    protected: z.boolean(),
    access_scope: z.boolean(),
    edge: z.object({ from: z.string(), to: z.string() }).optional(),
    role: z.union([z.string(), z.object({ name: z.string(), columns: z.record(z.string(), z.string()) })]).optional(),
    identifier: z.array(z.string()).optional(),
    language: z.string().optional(),
    ontology_version: z.int(),
  })
  .meta({ id: 'Type' });

/** An open type with columns, as GET shows one, is registered open and then given its columns. */
export function registrations(body: TypeBody): (RegisterType | EvolveType)[] {
  const { name, open, properties: columns } = body;
  return open === true && columns !== undefined ? [registration(body), evolution(name, columns, {})] : [registration(body)];
}

export function evolution(name: string, columns: z.infer<typeof properties>, asked: Guard & Meaning): EvolveType {
  const guarded = {
    ...(asked.protected !== undefined && { protected: asked.protected }),
    ...(asked.access_scope !== undefined && { accessScope: asked.access_scope }),
  };
  return { kind: 'evolve-type', name, properties: definitions(columns), guard: guarded, meaning: meaningOf(asked, columns) };
}

/** `columns` may say of properties which kind of identifier they hold. */
export function meaningOf({ edge, role, identifier, language }: Meaning, columns: z.infer<typeof properties> = {}): GivenMeaning {
  const kinds = Object.entries(columns).flatMap(([name, given]) =>
    typeof given === 'string' || given.identifier === undefined ? [] : [[name, given.identifier]],
  );
  return {
    ...(edge !== undefined && { edge }),
    ...(role !== undefined && typeof role !== 'object' && { role, roleColumns: null }),
    ...(role === null && { role, roleColumns: null }),
    ...(role && typeof role === 'object' && { role: role.name, roleColumns: role.columns ?? null }),
    ...(identifier !== undefined && { identifier }),
    ...(kinds.length > 0 && { identifierKinds: Object.fromEntries(kinds) }),
    ...(language !== undefined && { language }),
  };
}

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
    meaning: meaningOf(body, body.open === true ? {} : body.properties),
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

export function typeView(invocation: Invocation, name: string): z.infer<typeof typeReply> {
  return describeType(definitionOf(invocation, name), invocation.snapshot().protection(name));
}

/** With the guards of its rows: edges have the guards of the rows that wrote them. */
export function describeType(
  definition: TypeDefinition,
  effective: ReturnType<GovernedSnapshot['protection']>,
): z.infer<typeof typeReply> {
  const { edge, role, roleColumns, identifier, identifierKinds, language } = definition;
  const shownProperties: z.infer<typeof typeReply>['properties'] = {};
  for (const [name, { dims, ...stated }] of Object.entries(definition.properties)) {
    const kind = identifierKinds?.[name];
    const attributes = {
      ...stated,
      masked: stated.masked || effective.masked.has(name),
      ...(kind !== undefined && { identifier: kind }),
    };
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
    ...(role !== undefined && { role: roleColumns ? { name: role, columns: { ...roleColumns } } : role }),
    ...(identifier && { identifier: [...identifier] }),
    ...(language !== undefined && { language }),
    ontology_version: definition.ontologyVersion,
  };
}
