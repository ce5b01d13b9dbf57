/**
 * Bodies as canonical bytes, one function pair a kind. A body starts with its version and kind; all that follows is
 * fixed fields, u32-prefixed texts and column batches. Version 2 is of types that are guarded or have a property that
 * references a type, and of access records of which one states what opens a guard: what is new in them follows what version
 * 1 has. Version 3 is of rows that are sealed by subject, drawn in `subject-sections.ts`. Version 4 is of types and branches
 * whose name belongs to the tenant of their entry, its types laid out as in version 2, and of the end of a view, which is laid
 * out as a view. Rows are in `rows-codec.ts`.
 * Version 5 is of types and access records with tagged fields, and of kinds that came without a design: drawn in `later-fields.ts`.
 * Changing this needs a new version and a fixture.
 */
import { assert } from '../../errors.ts';
import { ByteReader, type ByteWriter, malformed } from '../bytes/byte-stream.ts';
import type { SealedVectors } from './embedded.ts';
import { isOpen, isOpenKind } from './entry.ts';
import type {
  AccessBody,
  AccessRecord,
  BranchBody,
  EntryBody,
  EntryKind,
  ExhibitBody,
  PropertyDefinition,
  RemovalBody,
  RowsBody,
  TokenBody,
  TypeBody,
  ViewBody,
  TypeDefinition,
} from './entry.ts';
import {
  readOpen,
  readRecordFields,
  readTypeFields,
  saysMore,
  tellsMore,
  writeOpen,
  writeRecordFields,
  writeTypeFields,
} from './later-fields.ts';
import { recordOf, recordText } from './record-codec.ts';
import {
  decodeRows,
  decodeSubjectHead,
  decodeSubjectRows,
  encodeRows,
  encodeSubjectRowsHead,
  noSubjects,
  type RowSecrets,
  type SealedRows,
  type SubjectOpener,
} from './rows-codec.ts';
import { readKeyIds, RowKeys } from './subject-open.ts';
import { columnTypes } from '../values/value.ts';

export const BODY_VERSION = 1;
const GUARDED_TYPE_VERSION = 2;
const STATED_ACCESS_VERSION = 2;
const SUBJECT_ROWS_VERSION = 3;
const OWN_NAME_VERSION = 4;
const FIELDS_VERSION = 5;

/** Numbers never change; a new kind takes the next one. */
export const kindNumber: Record<EntryKind, number> = {
  genesis: 1,
  seal: 2,
  rows: 3,
  removal: 4,
  type: 5,
  token: 6,
  access: 7,
  branch: 8,
  exhibit: 9,
  view: 10,
  receipt: 11,
  policy: 12,
  tenant: 13,
  agreement: 14,
  erasure: 15,
  retention: 16,
  redaction: 17,
  batch: 18,
  edge: 19,
  embedding: 20,
  judgement: 21,
  identity: 22,
  model: 23,
  rule: 24,
  job: 25,
  run: 26,
  quarantine: 27,
  search: 28,
};

export const kindOfNumber: ReadonlyMap<number, EntryKind> = new Map(
  (Object.entries(kindNumber) as [EntryKind, number][]).map(([kind, number]) => [number, kind]),
);

export interface DecodedBody {
  readonly body: EntryBody;
  /** Secrets of a `rows` body; null elsewhere. */
  readonly secrets: RowSecrets | null;
  /** Rows that are sealed by subject, those without a key dropped. Null elsewhere. */
  readonly sealed: SealedRows | null;
}

/** `sealed`: the vectors of a body whose rows are subjects'. */
export function encodeBody(
  body: EntryBody,
  secrets: RowSecrets | null,
  target: ByteWriter,
  sealed: readonly SealedVectors[] | null = null,
): void {
  target.u8(versionOf(body));
  target.u8(kindNumber[body.kind]);
  switch (body.kind) {
    case 'genesis':
      target.text(body.logId);
      target.text(body.origin);
      return target.text(body.engineVersion);
    case 'seal':
      target.u64(body.treeSize);
      return target.text(body.checkpoint);
    case 'rows':
      assert(secrets, 'rows have salts');
      return encodeRows(body, secrets, target);
    case 'removal':
      return encodeRemoval(body, target);
    case 'type':
      return encodeType(body, target);
    case 'token':
      return encodeToken(body, target);
    case 'access':
      return encodeAccess(body, target);
    case 'branch':
      return encodeBranch(body, target);
    case 'exhibit':
      return encodeExhibit(body, target);
    case 'view':
      target.text(body.name);
      target.text(body.sql);
      return target.u64(body.refreshSecs);
    case 'receipt':
      target.text(body.key);
      target.u32(body.batch);
      target.text(body.request);
      return target.text(body.outcome);
    case 'policy':
    case 'tenant':
    case 'agreement':
    case 'erasure':
    case 'retention':
    case 'redaction':
      return target.text(recordText(body));
    default:
      return writeOpen(body, target, sealed);
  }
}

function versionOf(body: EntryBody): number {
  if (isOpen(body) || (body.kind === 'type' && saysMore(body.definition)) || (body.kind === 'access' && tellsMore(body))) {
    return FIELDS_VERSION;
  }
  if ((body.kind === 'type' || body.kind === 'branch') && body.own === true) return OWN_NAME_VERSION;
  if (body.kind === 'view' && body.dropped === true) return OWN_NAME_VERSION;
  if (body.kind === 'type' && isGuarded(body.definition)) return GUARDED_TYPE_VERSION;
  return body.kind === 'access' && isStated(body) ? STATED_ACCESS_VERSION : BODY_VERSION;
}

/** What comes before the tables and cells of rows that are sealed by subject: see `subject-sections.ts`. */
export function encodeSubjectHead(body: RowsBody, target: ByteWriter): void {
  target.u8(SUBJECT_ROWS_VERSION);
  target.u8(kindNumber.rows);
  encodeSubjectRowsHead(body, target);
}

/**
 * Reads bytes that may be anything: REL_STORAGE, never more memory than the bytes themselves account for. `checked`: these
 * very bytes were read before, and the cells of their columns are not looked at again. Only rows that are sealed by subject
 * ask for keys.
 */
export function decodeBody(bytes: Uint8Array, subjects: SubjectOpener = noSubjects, checked = false): DecodedBody {
  const source = new ByteReader(bytes);
  const version = source.u8();
  const kind = kindOfNumber.get(source.u8());
  if (kind === undefined) throw malformed('an unknown entry kind');
  const known = isOpenKind(kind)
    ? version === FIELDS_VERSION
    : version === BODY_VERSION ||
      (version === GUARDED_TYPE_VERSION && kind === 'type') ||
      (version === STATED_ACCESS_VERSION && kind === 'access') ||
      (version === SUBJECT_ROWS_VERSION && kind === 'rows') ||
      (version === OWN_NAME_VERSION && (kind === 'type' || kind === 'branch' || kind === 'view')) ||
      (version === FIELDS_VERSION && (kind === 'type' || kind === 'access'));
  if (!known) throw malformed('an unknown body version');
  const decoded =
    kind !== 'rows'
      ? { body: decodeControl(kind, source, version, subjects), secrets: null, sealed: null }
      : version === SUBJECT_ROWS_VERSION
        ? decodeSubjectRows(source, subjects)
        : decodeRows(source, checked);
  source.end();
  return decoded;
}

/** Ids of the keys that a body asks for, 16 bytes each. */
export function subjectKeysOf(bytes: Uint8Array): Uint8Array {
  const source = new ByteReader(bytes);
  if (source.u8() !== SUBJECT_ROWS_VERSION) return new Uint8Array(0);
  if (source.u8() !== kindNumber.rows) throw malformed('an unknown body version');
  decodeSubjectHead(source);
  return readKeyIds(source);
}

/** Which keys the rows of a body lie under; null where none is sealed by subject. */
export function rowKeysOf(bytes: Uint8Array): RowKeys | null {
  const source = new ByteReader(bytes);
  if (source.u8() !== SUBJECT_ROWS_VERSION) return null;
  if (source.u8() !== kindNumber.rows) throw malformed('an unknown body version');
  return RowKeys.read(source, decodeSubjectHead(source).ops.length);
}

function decodeControl(
  kind: Exclude<EntryKind, 'rows'>,
  source: ByteReader,
  version: number,
  subjects: SubjectOpener,
): EntryBody {
  switch (kind) {
    case 'genesis':
      return { kind, logId: source.text(), origin: source.text(), engineVersion: source.text() };
    case 'seal':
      return { kind, treeSize: source.u64(), checkpoint: source.text() };
    case 'removal':
      return decodeRemoval(source);
    case 'type':
      if (version === BODY_VERSION) return decodeType(source);
      if (version === FIELDS_VERSION) return readTypeFields(decodeType(source).definition, source);
      return version === GUARDED_TYPE_VERSION ? decodeGuardedType(source) : { ...decodeTypeAndGuard(source), own: true };
    case 'token':
      return decodeToken(source);
    case 'access':
      if (version === FIELDS_VERSION) return readRecordFields(decodeAccess(source), source);
      return version === STATED_ACCESS_VERSION ? decodeStatedAccess(source) : decodeAccess(source);
    case 'branch':
      return version === OWN_NAME_VERSION ? { ...decodeBranch(source), own: true } : decodeBranch(source);
    case 'exhibit':
      return decodeExhibit(source);
    case 'view':
      return decodeView(source, version);
    case 'receipt':
      return { kind, key: source.text(), batch: source.u32(), request: source.text(), outcome: source.text() };
    case 'policy':
    case 'tenant':
    case 'agreement':
    case 'erasure':
    case 'retention':
    case 'redaction':
      return recordOf(kind, source.text());
    default:
      return readOpen(kind, source, subjects);
  }
}

function encodeRemoval(body: RemovalBody, target: ByteWriter): void {
  target.text(body.type);
  target.u32(body.keys.length);
  for (const key of body.keys) target.text(key);
  target.u32(body.positions.length);
  for (const position of body.positions) target.u64(position);
}

function decodeRemoval(source: ByteReader): RemovalBody {
  const type = source.text();
  const keys: string[] = [];
  for (let left = source.count(4); left > 0; left--) keys.push(source.text());
  const positions = new Float64Array(source.count(8));
  for (let i = 0; i < positions.length; i++) positions[i] = source.u64();
  return { kind: 'removal', type, keys, positions };
}

function encodeType(body: TypeBody, target: ByteWriter): void {
  const definition = body.definition;
  target.text(definition.name);
  const properties = Object.entries(definition.properties);
  target.u32(properties.length);
  for (const [name, property] of properties) {
    target.text(name);
    target.u8(columnTypes.indexOf(property.type));
    target.u8(+property.required | (+property.masked << 1) | (+property.indexed << 2) | (+property.subject << 3));
    target.u32(property.dims);
  }
  target.u8(definition.open ? 1 : 0);
  target.optionalText(definition.primaryKey);
  target.u32(definition.graphTriggers.length);
  for (const trigger of definition.graphTriggers) {
    target.text(trigger.linkType);
    target.text(trigger.sourceField);
    target.text(trigger.targetField);
  }
  target.u64(definition.ontologyVersion);
  if (saysMore(definition)) return writeTypeFields(body, target);
  if (body.own !== true && !isGuarded(definition)) return;
  const { guard } = definition;
  assert(guard === undefined || guard.protected || guard.accessScope, 'a guard asks for something');
  target.u8(guard === undefined ? 0 : +guard.protected | (+guard.accessScope << 1));
  for (const [, { references }] of properties) target.optionalText(references ?? null);
}

function isGuarded({ guard, properties }: TypeDefinition): boolean {
  if (guard !== undefined) return true;
  for (const name in properties) if (properties[name]!.references !== undefined) return true;
  return false;
}

function decodeType(source: ByteReader): TypeBody {
  const name = source.text();
  const properties: [string, PropertyDefinition][] = [];
  for (let left = source.count(10); left > 0; left--) {
    const property = source.text();
    const type = columnTypes[source.u8()];
    const flags = source.u8();
    if (type === undefined || flags > 15) throw malformed('an unknown property type or flag');
    const bit = (n: number): boolean => (flags & (1 << n)) !== 0;
    const dims = source.u32();
    properties.push([property, { type, required: bit(0), masked: bit(1), indexed: bit(2), subject: bit(3), dims }]);
  }
  checkDistinct(properties);
  const open = source.flag();
  const primaryKey = source.optionalText();
  const graphTriggers = [];
  for (let left = source.count(12); left > 0; left--) {
    graphTriggers.push({ linkType: source.text(), sourceField: source.text(), targetField: source.text() });
  }
  const ontologyVersion = source.u64();
  // fromEntries defines own properties: one named `__proto__` is a property like any other.
  const definition = { name, properties: Object.fromEntries(properties), open, primaryKey, graphTriggers, ontologyVersion };
  return { kind: 'type', definition };
}

function decodeGuardedType(source: ByteReader): TypeBody {
  const body = decodeTypeAndGuard(source);
  if (!isGuarded(body.definition)) throw malformed('a guarded type without a guard');
  return body;
}

function decodeTypeAndGuard(source: ByteReader): TypeBody {
  const { definition } = decodeType(source);
  const flags = source.u8();
  if (flags > 3) throw malformed('an unknown guard of a type');
  const properties = Object.entries(definition.properties).map(([name, property]): [string, PropertyDefinition] => {
    const references = source.optionalText();
    return [name, references === null ? property : { ...property, references }];
  });
  const guard = flags === 0 ? {} : { guard: { protected: (flags & 1) !== 0, accessScope: (flags & 2) !== 0 } };
  return { kind: 'type', definition: { ...definition, properties: Object.fromEntries(properties), ...guard } };
}

function checkDistinct(named: readonly (readonly [string, unknown])[]): void {
  if (new Set(named.map(([name]) => name)).size !== named.length) throw malformed('a name twice');
}

const tokenChanges = ['minted', 'rotated', 'revoked'] as const;
const attributeKinds = ['string', 'number', 'boolean'] as const;

function encodeToken(body: TokenBody, target: ByteWriter): void {
  const token = body.token;
  target.u8(tokenChanges.indexOf(body.change));
  target.text(token.id);
  target.text(token.secretHash);
  target.text(token.principal);
  target.optionalText(token.tenant);
  target.optionalText(token.organization);
  encodeTexts(token.roles, target);
  const attributes = Object.entries(token.attributes);
  target.u32(attributes.length);
  for (const [name, value] of attributes) {
    target.text(name);
    target.u8(attributeKinds.indexOf(typeof value as 'string' | 'number' | 'boolean'));
    if (typeof value === 'string') target.text(value);
    else if (typeof value === 'number') target.f64(value);
    else target.u8(value ? 1 : 0);
  }
  encodeTexts(token.purposes, target);
  target.i64(token.expiresAt);
  target.optionalText(body.replaces);
}

function decodeToken(source: ByteReader): TokenBody {
  const change = tokenChanges[source.u8()];
  if (change === undefined) throw malformed('an unknown token change');
  const id = source.text();
  const secretHash = source.text();
  const principal = source.text();
  const tenant = source.optionalText();
  const organization = source.optionalText();
  const roles = decodeTexts(source);
  const attributes: [string, string | number | boolean][] = [];
  for (let left = source.count(6); left > 0; left--) {
    const name = source.text();
    const kind = attributeKinds[source.u8()];
    if (kind === undefined) throw malformed('an unknown attribute kind');
    attributes.push([name, kind === 'string' ? source.text() : kind === 'number' ? source.f64() : source.flag()]);
  }
  checkDistinct(attributes);
  const purposes = decodeTexts(source);
  const expiresAt = source.i64();
  const replaces = source.optionalText();
  const token = {
    id,
    secretHash,
    principal,
    tenant,
    organization,
    roles,
    attributes: Object.fromEntries(attributes),
    purposes,
    expiresAt,
  };
  return { kind: 'token', change, token, replaces };
}

function encodeTexts(texts: readonly string[], target: ByteWriter): void {
  target.u32(texts.length);
  for (const text of texts) target.text(text);
}

function decodeTexts(source: ByteReader): string[] {
  const texts: string[] = [];
  for (let left = source.count(4); left > 0; left--) texts.push(source.text());
  return texts;
}

const decisions = ['allow', 'deny', 'error'] as const;

function encodeAccess(body: AccessBody, target: ByteWriter): void {
  target.u32(body.records.length);
  for (const record of body.records) {
    target.i64(record.time);
    target.text(record.correlationId);
    target.text(record.principal);
    target.optionalText(record.tenant);
    target.optionalText(record.path);
    target.text(record.door);
    target.text(record.action);
    target.optionalText(record.purpose);
    target.optionalText(record.objectType);
    target.u8(decisions.indexOf(record.decision));
    target.optionalText(record.code);
    target.optionalText(record.template);
    target.optionalText(record.literalDigest);
    target.i64(record.basis);
    target.u64(record.rowCount);
    target.f64(record.costUnits);
    target.f64(record.durationMs);
  }
  if (tellsMore(body)) return writeRecordFields(body, target);
  if (!isStated(body)) return;
  for (const { stated } of body.records) {
    assert(stated === undefined || stated.breakGlass !== null || stated.accessScopeRef !== null, 'what is stated says something');
    target.optionalText(stated?.breakGlass ?? null);
    target.optionalText(stated?.accessScopeRef ?? null);
  }
}

function isStated({ records }: AccessBody): boolean {
  for (const { stated } of records) if (stated !== undefined) return true;
  return false;
}

function decodeAccess(source: ByteReader): AccessBody {
  const records: AccessRecord[] = [];
  for (let left = source.count(64); left > 0; left--) {
    records.push({
      time: source.i64(),
      correlationId: source.text(),
      principal: source.text(),
      tenant: source.optionalText(),
      path: source.optionalText(),
      door: source.text(),
      action: source.text(),
      purpose: source.optionalText(),
      objectType: source.optionalText(),
      decision: decisionOf(source.u8()),
      code: source.optionalText(),
      template: source.optionalText(),
      literalDigest: source.optionalText(),
      basis: source.i64(),
      rowCount: source.u64(),
      costUnits: source.f64(),
      durationMs: source.f64(),
    });
  }
  return { kind: 'access', records };
}

function decodeStatedAccess(source: ByteReader): AccessBody {
  const { records } = decodeAccess(source);
  const body = {
    kind: 'access' as const,
    records: records.map((record): AccessRecord => {
      const stated = { breakGlass: source.optionalText(), accessScopeRef: source.optionalText() };
      return stated.breakGlass === null && stated.accessScopeRef === null ? record : { ...record, stated };
    }),
  };
  if (!isStated(body)) throw malformed('access records that state nothing, as if one did');
  return body;
}

function decisionOf(number: number): AccessRecord['decision'] {
  const decision = decisions[number];
  if (decision === undefined) throw malformed('an unknown decision');
  return decision;
}

function decodeView(source: ByteReader, version: number): ViewBody {
  const body: ViewBody = { kind: 'view', name: source.text(), sql: source.text(), refreshSecs: source.u64() };
  return version === OWN_NAME_VERSION ? { ...body, dropped: true } : body;
}

const branchChanges = ['forked', 'deleted'] as const;
const branchShares = ['everything', 'ontology'] as const;

function encodeBranch(body: BranchBody, target: ByteWriter): void {
  target.u8(branchChanges.indexOf(body.change));
  target.text(body.name);
  target.text(body.source);
  target.u8(branchShares.indexOf(body.shares));
}

function decodeBranch(source: ByteReader): BranchBody {
  const change = branchChanges[source.u8()];
  const name = source.text();
  const from = source.text();
  const shares = branchShares[source.u8()];
  if (change === undefined || shares === undefined) throw malformed('an unknown change of a branch');
  return { kind: 'branch', change, name, source: from, shares };
}

function encodeExhibit(body: ExhibitBody, target: ByteWriter): void {
  target.text(body.exhibit);
  target.u64(body.link);
  target.text(body.act);
  target.text(body.recipe);
  target.text(body.resultHash);
  target.text(body.previousSeal);
  target.text(body.seal);
}

function decodeExhibit(source: ByteReader): ExhibitBody {
  return {
    kind: 'exhibit',
    exhibit: source.text(),
    link: source.u64(),
    act: source.text(),
    recipe: source.text(),
    resultHash: source.text(),
    previousSeal: source.text(),
    seal: source.text(),
  };
}
