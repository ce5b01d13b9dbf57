/** Fields that every body of a kind has, in their order: u8 to u64, f64, and texts behind their u32 size. */
import { ByteReader, type ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import type {
  AccessBody,
  AccessRecord,
  BranchBody,
  EntryBody,
  ExhibitBody,
  OpenBody,
  PropertyDefinition,
  RemovalBody,
  RowPartsBody,
  RowsBody,
  TokenBody,
  TypeBody,
} from './entry.ts';
import { recordOf, recordText } from './record-codec.ts';
import { columnTypes } from '../values/value.ts';

/** Bodies of fixed fields: all but rows and those of open kinds. */
export type FixedBody = Exclude<EntryBody, RowsBody | RowPartsBody | OpenBody>;
export type FixedKind = FixedBody['kind'];

export function encodeFixed(body: FixedBody, target: ByteWriter): void {
  switch (body.kind) {
    case 'genesis':
      target.text(body.logId);
      target.text(body.origin);
      return target.text(body.engineVersion);
    case 'seal':
      target.u64(body.treeSize);
      return target.text(body.checkpoint);
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
    default:
      return target.text(recordText(body));
  }
}

export function decodeFixed(kind: FixedKind, source: ByteReader): FixedBody {
  switch (kind) {
    case 'genesis':
      return { kind, logId: source.text(), origin: source.text(), engineVersion: source.text() };
    case 'seal':
      return { kind, treeSize: source.u64(), checkpoint: source.text() };
    case 'removal':
      return decodeRemoval(source);
    case 'type':
      return decodeType(source);
    case 'token':
      return decodeToken(source);
    case 'access':
      return decodeAccess(source);
    case 'branch':
      return decodeBranch(source);
    case 'exhibit':
      return decodeExhibit(source);
    case 'view':
      return { kind, name: source.text(), sql: source.text(), refreshSecs: source.u64() };
    case 'receipt':
      return { kind, key: source.text(), batch: source.u32(), request: source.text(), outcome: source.text() };
    default:
      return recordOf(kind, source.text());
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

function encodeType({ definition }: TypeBody, target: ByteWriter): void {
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
}

function decodeType(source: ByteReader): TypeBody {
  const name = source.text();
  const properties: [string, PropertyDefinition][] = [];
  for (let left = source.count(10); left > 0; left--) {
    const property = source.text();
    const type = columnTypes[source.u8()];
    const flags = source.u8();
    if (type === undefined || flags > 15) throw malformedError('an unknown property type or flag');
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

function checkDistinct(named: readonly (readonly [string, unknown])[]): void {
  if (new Set(named.map(([name]) => name)).size !== named.length) throw malformedError('a name twice');
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
  if (change === undefined) throw malformedError('an unknown token change');
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
    if (kind === undefined) throw malformedError('an unknown attribute kind');
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

function decisionOf(number: number): AccessRecord['decision'] {
  const decision = decisions[number];
  if (decision === undefined) throw malformedError('an unknown decision');
  return decision;
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
  if (change === undefined || shares === undefined) throw malformedError('an unknown change of a branch');
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
