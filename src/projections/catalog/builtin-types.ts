/**
 * Types that exist without being registered, and the types whose rows never leave. Source: specification, "Compatibility
 * doors", "Memory types", "Other resources" and "Classified types". Pure; every room may name it.
 */
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';

const builtinProperty = (type: ColumnType, subject = false): PropertyDefinition => ({
  type,
  required: false,
  masked: false,
  indexed: false,
  subject,
  dims: 0,
});

/** The subject of a row, as its writer names it. */
const subjectPropertyText = builtinProperty('string', true);

function builtinType(name: string, builtinColumns: Readonly<Record<string, ColumnType | PropertyDefinition>>): TypeDefinition {
  const builtinProperties: Record<string, PropertyDefinition> = Object.create(null);
  for (const [column, columnDeclaration] of Object.entries(builtinColumns))
    builtinProperties[column] = typeof columnDeclaration === 'string' ? builtinProperty(columnDeclaration) : columnDeclaration;
  return { name, properties: builtinProperties, open: true, primaryKey: null, graphTriggers: [], ontologyVersion: 0 };
}

/** Rules raise alerts as rows of this type. No name is reserved: a tenant may have a type of its own so called. */
export const alertType = 'Alert';

/** Where a tenant has a type of its own that is called so. */
export const otherAlertType = 'RuleAlert';

/** Columns of alerts; the type is registered with the first one. */
export const alertProperties: Readonly<Record<string, PropertyDefinition>> = {
  rule_id: builtinProperty('string'),
  rule_version: builtinProperty('integer'),
  run_id: builtinProperty('string'),
  severity: builtinProperty('string'),
  title: builtinProperty('string'),
  status: builtinProperty('string'),
  matched_type: builtinProperty('string'),
  matched_pk: builtinProperty('string'),
  matched_system_from: builtinProperty('timestamp'),
  count: builtinProperty('integer'),
};

/** In codepoint order of their names. Open: their writers may bring further columns. */
export const builtinTypes: readonly TypeDefinition[] = [
  builtinType('AgentSession', { session_id: 'string' }),
  builtinType('DecisionRecord', { choice: 'string', inputs: 'json', rationale: 'string', session_id: 'string' }),
  builtinType('DocumentChunk', {
    source_id: 'string',
    sequence: 'integer',
    content: 'string',
    element_type: 'string',
    start_offset: 'integer',
    end_offset: 'integer',
    page: 'integer',
    heading: 'string',
    metadata: 'json',
    tool_call_id: 'string',
    subject: subjectPropertyText,
  }),
  builtinType('DocumentEntry', { database: 'string', collection: 'string', document: 'json' }),
  builtinType('DocumentSource', {
    title: 'string',
    uri: 'string',
    format: 'string',
    length: 'integer',
    content_hash: 'string',
    tool_call_id: 'string',
    subject: subjectPropertyText,
  }),
  builtinType('Episode', { title: 'string', session_id: 'string' }),
  builtinType('KnowledgeTriple', { subject: 'string', predicate: 'string', object: 'string' }),
  builtinType('KvEntry', { value: 'string', value_base64: 'string' }),
  builtinType('MemoryItem', {
    content: 'string',
    session_id: 'string',
    confidence: 'number',
    memory_class: 'string',
    tool_call_id: 'string',
    supersedes: 'string',
    derived_from: 'json',
  }),
  builtinType('ObjectStoreBucket', { name: 'string' }),
  builtinType('ObjectStoreObject', {
    bucket: 'string',
    key: 'string',
    size: 'integer',
    content_hash: 'string',
    content_type: 'string',
    metadata: 'json',
    headers: 'json',
    body: 'string',
    body_as: 'string',
  }),
  builtinType('PubSubMessage', { channel: 'string', message: 'string', message_base64: 'string' }),
  builtinType('Quarantine', {
    item_type: 'string',
    item_id: 'string',
    root_id: 'string',
    receipt_id: 'string',
    reason: 'string',
  }),
  builtinType('ToolCall', {
    name: 'string',
    arguments: 'json',
    result: 'json',
    latency: 'number',
    session_id: 'string',
    recipe: 'json',
  }),
];

/** Columns that say whose rows of such a type are, by its name: no entry of the log says so. */
export const builtinSubjects: ReadonlyMap<string, string> = new Map(
  builtinTypes.flatMap(({ name, properties }) =>
    Object.entries(properties).flatMap(([column, { subject }]) => (subject ? [[name, column] as const] : [])),
  ),
);

export const builtinTypeNames: ReadonlySet<string> = new Set(builtinTypes.map((type) => type.name));

/** Never returned through any door, and never registered or written: whether they hold anything stays unknown. */
export const classifiedTypes: ReadonlySet<string> = new Set([
  'SourceTrueIdentity',
  'SigintIntercept',
  'AccessScopedIntercept',
  'LawfulInterceptRecord',
]);
