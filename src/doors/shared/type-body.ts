/** Types as callers write and read them. Definitions are checked strictly: a misspelt attribute would be ignored silently. */
import { z } from 'zod';
import { didYouMean, ServiceError } from '../../errors.ts';
import type { GovernedSnapshot, Invocation } from '../../governance/gate-contract.ts';
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';
import { columnTypes, limits } from '../../log/values/value.ts';
import type { EvolveType, GivenMeaning, RegisterType } from '../../projections/command.ts';
import { record } from './schema-check.ts';

const columnTypeName = z.enum(columnTypes as readonly [string, ...string[]]);

const propertyField = z
  .union([
    columnTypeName,
    z.strictObject({
      type: columnTypeName,
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

export const properties = record(propertyField, limits.columnsPerType);

const graphTriggerField = z.strictObject({ link_type: z.string(), src_field: z.string(), dst_field: z.string() });

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
    graph_triggers: z.array(graphTriggerField).max(64).optional(),
    open: z.boolean().optional().describe('true: columns beyond the declared ones are inferred on write'),
    ...guard,
    ...meaning,
    ontology_version: z.int().optional().describe('ignored'),
  })
  .meta({ id: 'TypeBody' });

export type TypeBody = z.infer<typeof typeBody>;
type TypeGuard = Pick<TypeBody, 'protected' | 'access_scope'>;
type TypeMeaning = Pick<TypeBody, keyof typeof meaning>;

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
    graph_triggers: z.array(graphTriggerField),
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
export function registrations(typeFields: TypeBody): (RegisterType | EvolveType)[] {
  const { name: registeredName, open: isOpenType, properties: typeColumns } = typeFields;
  return isOpenType === true && typeColumns !== undefined
    ? [typeRegistration(typeFields), evolution(registeredName, typeColumns, {})]
    : [typeRegistration(typeFields)];
}

export function evolution(
  evolvedType: string,
  evolvedColumns: z.infer<typeof properties>,
  evolvedAspects: TypeGuard & TypeMeaning,
): EvolveType {
  const evolvedGuard = {
    ...(evolvedAspects.protected !== undefined && { protected: evolvedAspects.protected }),
    ...(evolvedAspects.access_scope !== undefined && { accessScope: evolvedAspects.access_scope }),
  };
  return {
    kind: 'evolve-type',
    name: evolvedType,
    properties: propertyDefinitions(evolvedColumns),
    guard: evolvedGuard,
    meaning: meaningOf(evolvedAspects, evolvedColumns),
  };
}

/** `columns` may say of properties which kind of identifier they hold. */
export function meaningOf(
  { edge, role, identifier, language }: TypeMeaning,
  columns: z.infer<typeof properties> = {},
): GivenMeaning {
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

function typeRegistration(typeFields: TypeBody): RegisterType {
  return {
    kind: 'register-type',
    name: typeFields.name,
    properties:
      typeFields.properties === undefined || typeFields.open === true ? null : propertyDefinitions(typeFields.properties),
    primaryKey: typeFields.primary_key ?? null,
    graphTriggers: (typeFields.graph_triggers ?? []).map((graphTriggerOfBody) => ({
      linkType: graphTriggerOfBody.link_type,
      sourceField: graphTriggerOfBody.src_field,
      targetField: graphTriggerOfBody.dst_field,
    })),
    guard: { protected: typeFields.protected ?? false, accessScope: typeFields.access_scope ?? false },
    meaning: meaningOf(typeFields, typeFields.open === true ? {} : typeFields.properties),
  };
}

function propertyDefinitions(givenProperties: z.infer<typeof properties>): Record<string, PropertyDefinition> {
  const definitionByColumn: Record<string, PropertyDefinition> = {};
  for (const [columnName, givenProperty] of Object.entries(givenProperties)) {
    const columnAttributes = typeof givenProperty === 'string' ? { type: givenProperty } : givenProperty;
    definitionByColumn[columnName] = {
      type: columnAttributes.type as PropertyDefinition['type'],
      required: columnAttributes.required ?? false,
      masked: columnAttributes.masked ?? false,
      indexed: columnAttributes.indexed ?? false,
      subject: columnAttributes.subject ?? false,
      dims: columnAttributes.dims ?? 0,
      ...(columnAttributes.references !== undefined && { references: columnAttributes.references }),
    };
  }
  return definitionByColumn;
}

export function definitionOf(typeInvocation: Invocation, typeNameGiven: string): TypeDefinition {
  const { catalog: typeCatalog, offers: offersType } = typeInvocation.snapshot();
  const typeDefinition = typeCatalog.type(typeNameGiven);
  if (typeDefinition === undefined) {
    const typeGuess = didYouMean(
      typeNameGiven,
      typeCatalog.types().flatMap((offeredType) => (offersType(offeredType.name) ? offeredType.name : [])),
    );
    const unknownTypeText = `the type ${JSON.stringify(typeNameGiven.slice(0, limits.identifierLength))} is not registered${typeGuess}`;
    throw new ServiceError('REL_UNKNOWN_TYPE', unknownTypeText);
  }
  return typeDefinition;
}

export function typeView(invocation: Invocation, name: string): z.infer<typeof typeReply> {
  return describeType(definitionOf(invocation, name), invocation.snapshot().protection(name));
}

/** With the guards of its rows: edges have the guards of the rows that wrote them. */
export function describeType(
  typeDefinition: TypeDefinition,
  typeProtection: ReturnType<GovernedSnapshot['protection']>,
): z.infer<typeof typeReply> {
  const {
    edge: edgeEnds,
    role: typeRole,
    roleColumns,
    identifier: identifierColumns,
    identifierKinds,
    language: textLanguage,
  } = typeDefinition;
  const shownColumns: z.infer<typeof typeReply>['properties'] = {};
  for (const [columnName, { dims: vectorDims, ...statedAttributes }] of Object.entries(typeDefinition.properties)) {
    const identifierKind = identifierKinds?.[columnName];
    const shownAttributes = {
      ...statedAttributes,
      masked: statedAttributes.masked || typeProtection.masked.has(columnName),
      ...(identifierKind !== undefined && { identifier: identifierKind }),
    };
    shownColumns[columnName] = vectorDims === 0 ? shownAttributes : { ...shownAttributes, dims: vectorDims };
  }
  return {
    name: typeDefinition.name,
    properties: shownColumns,
    primary_key: typeDefinition.primaryKey,
    open: typeDefinition.open,
    graph_triggers: typeDefinition.graphTriggers.map((typeGraphTrigger) => ({
      link_type: typeGraphTrigger.linkType,
      src_field: typeGraphTrigger.sourceField,
      dst_field: typeGraphTrigger.targetField,
    })),
    protected: typeProtection.protected,
    access_scope: typeProtection.accessScope,
    ...(edgeEnds && { edge: edgeEnds }),
    ...(typeRole !== undefined && { role: roleColumns ? { name: typeRole, columns: { ...roleColumns } } : typeRole }),
    ...(identifierColumns && { identifier: [...identifierColumns] }),
    ...(textLanguage !== undefined && { language: textLanguage }),
    ontology_version: typeDefinition.ontologyVersion,
  };
}
