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

export function encodeFixed(fixedBody: FixedBody, fixedWriter: ByteWriter): void {
  switch (fixedBody.kind) {
    case 'genesis':
      fixedWriter.text(fixedBody.logId);
      fixedWriter.text(fixedBody.origin);
      return fixedWriter.text(fixedBody.engineVersion);
    case 'seal':
      fixedWriter.u64(fixedBody.treeSize);
      return fixedWriter.text(fixedBody.checkpoint);
    case 'removal':
      return encodeRemoval(fixedBody, fixedWriter);
    case 'type':
      return encodeTypeBody(fixedBody, fixedWriter);
    case 'token':
      return encodeTokenBody(fixedBody, fixedWriter);
    case 'access':
      return encodeAccess(fixedBody, fixedWriter);
    case 'branch':
      return encodeBranch(fixedBody, fixedWriter);
    case 'exhibit':
      return encodeExhibit(fixedBody, fixedWriter);
    case 'view':
      fixedWriter.text(fixedBody.name);
      fixedWriter.text(fixedBody.sql);
      return fixedWriter.u64(fixedBody.refreshSecs);
    case 'receipt':
      fixedWriter.text(fixedBody.key);
      fixedWriter.u32(fixedBody.batch);
      fixedWriter.text(fixedBody.request);
      return fixedWriter.text(fixedBody.outcome);
    default:
      return fixedWriter.text(recordText(fixedBody));
  }
}

export function decodeFixed(kind: FixedKind, fixedReader: ByteReader): FixedBody {
  switch (kind) {
    case 'genesis':
      return { kind, logId: fixedReader.text(), origin: fixedReader.text(), engineVersion: fixedReader.text() };
    case 'seal':
      return { kind, treeSize: fixedReader.u64(), checkpoint: fixedReader.text() };
    case 'removal':
      return decodeRemoval(fixedReader);
    case 'type':
      return decodeTypeBody(fixedReader);
    case 'token':
      return decodeTokenBody(fixedReader);
    case 'access':
      return decodeAccess(fixedReader);
    case 'branch':
      return decodeBranch(fixedReader);
    case 'exhibit':
      return decodeExhibit(fixedReader);
    case 'view':
      return { kind, name: fixedReader.text(), sql: fixedReader.text(), refreshSecs: fixedReader.u64() };
    case 'receipt':
      return {
        kind,
        key: fixedReader.text(),
        batch: fixedReader.u32(),
        request: fixedReader.text(),
        outcome: fixedReader.text(),
      };
    default:
      return recordOf(kind, fixedReader.text());
  }
}

function encodeRemoval(removalBody: RemovalBody, removalWriter: ByteWriter): void {
  removalWriter.text(removalBody.type);
  removalWriter.u32(removalBody.keys.length);
  for (const removedKey of removalBody.keys) removalWriter.text(removedKey);
  removalWriter.u32(removalBody.positions.length);
  for (const removedPosition of removalBody.positions) removalWriter.u64(removedPosition);
}

function decodeRemoval(removalReader: ByteReader): RemovalBody {
  const removedType = removalReader.text();
  const removedKeys: string[] = [];
  for (let keysLeft = removalReader.count(4); keysLeft > 0; keysLeft--) removedKeys.push(removalReader.text());
  const removedPositions = new Float64Array(removalReader.count(8));
  for (let i = 0; i < removedPositions.length; i++) removedPositions[i] = removalReader.u64();
  return { kind: 'removal', type: removedType, keys: removedKeys, positions: removedPositions };
}

function encodeTypeBody({ definition: typeDefinition }: TypeBody, typeWriter: ByteWriter): void {
  typeWriter.text(typeDefinition.name);
  const typeProperties = Object.entries(typeDefinition.properties);
  typeWriter.u32(typeProperties.length);
  for (const [propertyName, typeProperty] of typeProperties) {
    typeWriter.text(propertyName);
    typeWriter.u8(columnTypes.indexOf(typeProperty.type));
    typeWriter.u8(
      +typeProperty.required | (+typeProperty.masked << 1) | (+typeProperty.indexed << 2) | (+typeProperty.subject << 3),
    );
    typeWriter.u32(typeProperty.dims);
  }
  typeWriter.u8(typeDefinition.open ? 1 : 0);
  typeWriter.optionalText(typeDefinition.primaryKey);
  typeWriter.u32(typeDefinition.graphTriggers.length);
  for (const graphTrigger of typeDefinition.graphTriggers) {
    typeWriter.text(graphTrigger.linkType);
    typeWriter.text(graphTrigger.sourceField);
    typeWriter.text(graphTrigger.targetField);
  }
  typeWriter.u64(typeDefinition.ontologyVersion);
}

function decodeTypeBody(typeReader: ByteReader): TypeBody {
  const typeName = typeReader.text();
  const typeProperties: [string, PropertyDefinition][] = [];
  for (let itemsLeft = typeReader.count(10); itemsLeft > 0; itemsLeft--) {
    const propertyName = typeReader.text();
    const propertyType = columnTypes[typeReader.u8()];
    const propertyFlags = typeReader.u8();
    if (propertyType === undefined || propertyFlags > 15) throw malformedError('an unknown property type or flag');
    const hasPropertyFlag = (n: number): boolean => (propertyFlags & (1 << n)) !== 0;
    const vectorDims = typeReader.u32();
    typeProperties.push([
      propertyName,
      {
        type: propertyType,
        required: hasPropertyFlag(0),
        masked: hasPropertyFlag(1),
        indexed: hasPropertyFlag(2),
        subject: hasPropertyFlag(3),
        dims: vectorDims,
      },
    ]);
  }
  checkDistinctNames(typeProperties);
  const isOpenType = typeReader.flag();
  const primaryKey = typeReader.optionalText();
  const graphTriggers = [];
  for (let left = typeReader.count(12); left > 0; left--) {
    graphTriggers.push({ linkType: typeReader.text(), sourceField: typeReader.text(), targetField: typeReader.text() });
  }
  const ontologyVersion = typeReader.u64();
  // fromEntries defines own properties: one named `__proto__` is a property like any other.
  const typeDefinition = {
    name: typeName,
    properties: Object.fromEntries(typeProperties),
    open: isOpenType,
    primaryKey,
    graphTriggers,
    ontologyVersion,
  };
  return { kind: 'type', definition: typeDefinition };
}

function checkDistinctNames(namedValues: readonly (readonly [string, unknown])[]): void {
  if (new Set(namedValues.map(([name]) => name)).size !== namedValues.length) throw malformedError('a name twice');
}

const tokenChanges = ['minted', 'rotated', 'revoked'] as const;
const attributeKinds = ['string', 'number', 'boolean'] as const;

function encodeTokenBody(tokenBody: TokenBody, tokenWriter: ByteWriter): void {
  const tokenRecord = tokenBody.token;
  tokenWriter.u8(tokenChanges.indexOf(tokenBody.change));
  tokenWriter.text(tokenRecord.id);
  tokenWriter.text(tokenRecord.secretHash);
  tokenWriter.text(tokenRecord.principal);
  tokenWriter.optionalText(tokenRecord.tenant);
  tokenWriter.optionalText(tokenRecord.organization);
  encodeTokenTexts(tokenRecord.roles, tokenWriter);
  const tokenAttributes = Object.entries(tokenRecord.attributes);
  tokenWriter.u32(tokenAttributes.length);
  for (const [attributeName, attributeValue] of tokenAttributes) {
    tokenWriter.text(attributeName);
    tokenWriter.u8(attributeKinds.indexOf(typeof attributeValue as 'string' | 'number' | 'boolean'));
    if (typeof attributeValue === 'string') tokenWriter.text(attributeValue);
    else if (typeof attributeValue === 'number') tokenWriter.f64(attributeValue);
    else tokenWriter.u8(attributeValue ? 1 : 0);
  }
  encodeTokenTexts(tokenRecord.purposes, tokenWriter);
  tokenWriter.i64(tokenRecord.expiresAt);
  tokenWriter.optionalText(tokenBody.replaces);
}

function decodeTokenBody(tokenReader: ByteReader): TokenBody {
  const tokenChange = tokenChanges[tokenReader.u8()];
  if (tokenChange === undefined) throw malformedError('an unknown token change');
  const tokenId = tokenReader.text();
  const secretHash = tokenReader.text();
  const principal = tokenReader.text();
  const tenant = tokenReader.optionalText();
  const organization = tokenReader.optionalText();
  const roles = decodeTokenTexts(tokenReader);
  const tokenAttributes: [string, string | number | boolean][] = [];
  for (let attributesLeft = tokenReader.count(6); attributesLeft > 0; attributesLeft--) {
    const attributeName = tokenReader.text();
    const attributeKind = attributeKinds[tokenReader.u8()];
    if (attributeKind === undefined) throw malformedError('an unknown attribute kind');
    tokenAttributes.push([
      attributeName,
      attributeKind === 'string' ? tokenReader.text() : attributeKind === 'number' ? tokenReader.f64() : tokenReader.flag(),
    ]);
  }
  checkDistinctNames(tokenAttributes);
  const purposes = decodeTokenTexts(tokenReader);
  const expiresAt = tokenReader.i64();
  const replaces = tokenReader.optionalText();
  const tokenRecord = {
    id: tokenId,
    secretHash,
    principal,
    tenant,
    organization,
    roles,
    attributes: Object.fromEntries(tokenAttributes),
    purposes,
    expiresAt,
  };
  return { kind: 'token', change: tokenChange, token: tokenRecord, replaces };
}

function encodeTokenTexts(tokenTexts: readonly string[], tokenWriter: ByteWriter): void {
  tokenWriter.u32(tokenTexts.length);
  for (const tokenText of tokenTexts) tokenWriter.text(tokenText);
}

function decodeTokenTexts(tokenReader: ByteReader): string[] {
  const tokenTexts: string[] = [];
  for (let textsLeft = tokenReader.count(4); textsLeft > 0; textsLeft--) tokenTexts.push(tokenReader.text());
  return tokenTexts;
}

const accessDecisions = ['allow', 'deny', 'error'] as const;

function encodeAccess(accessBody: AccessBody, accessWriter: ByteWriter): void {
  accessWriter.u32(accessBody.records.length);
  for (const accessRecord of accessBody.records) {
    accessWriter.i64(accessRecord.time);
    accessWriter.text(accessRecord.correlationId);
    accessWriter.text(accessRecord.principal);
    accessWriter.optionalText(accessRecord.tenant);
    accessWriter.optionalText(accessRecord.path);
    accessWriter.text(accessRecord.door);
    accessWriter.text(accessRecord.action);
    accessWriter.optionalText(accessRecord.purpose);
    accessWriter.optionalText(accessRecord.objectType);
    accessWriter.u8(accessDecisions.indexOf(accessRecord.decision));
    accessWriter.optionalText(accessRecord.code);
    accessWriter.optionalText(accessRecord.template);
    accessWriter.optionalText(accessRecord.literalDigest);
    accessWriter.i64(accessRecord.basis);
    accessWriter.u64(accessRecord.rowCount);
    accessWriter.f64(accessRecord.costUnits);
    accessWriter.f64(accessRecord.durationMs);
  }
}

function decodeAccess(accessReader: ByteReader): AccessBody {
  const accessRecords: AccessRecord[] = [];
  for (let recordsLeft = accessReader.count(64); recordsLeft > 0; recordsLeft--) {
    accessRecords.push({
      time: accessReader.i64(),
      correlationId: accessReader.text(),
      principal: accessReader.text(),
      tenant: accessReader.optionalText(),
      path: accessReader.optionalText(),
      door: accessReader.text(),
      action: accessReader.text(),
      purpose: accessReader.optionalText(),
      objectType: accessReader.optionalText(),
      decision: accessDecisionOf(accessReader.u8()),
      code: accessReader.optionalText(),
      template: accessReader.optionalText(),
      literalDigest: accessReader.optionalText(),
      basis: accessReader.i64(),
      rowCount: accessReader.u64(),
      costUnits: accessReader.f64(),
      durationMs: accessReader.f64(),
    });
  }
  return { kind: 'access', records: accessRecords };
}

function accessDecisionOf(decisionNumber: number): AccessRecord['decision'] {
  const accessDecision = accessDecisions[decisionNumber];
  if (accessDecision === undefined) throw malformedError('an unknown decision');
  return accessDecision;
}

const branchChanges = ['forked', 'deleted'] as const;
const branchShares = ['everything', 'ontology'] as const;

function encodeBranch(branchBody: BranchBody, branchWriter: ByteWriter): void {
  branchWriter.u8(branchChanges.indexOf(branchBody.change));
  branchWriter.text(branchBody.name);
  branchWriter.text(branchBody.source);
  branchWriter.u8(branchShares.indexOf(branchBody.shares));
}

function decodeBranch(branchReader: ByteReader): BranchBody {
  const branchChange = branchChanges[branchReader.u8()];
  const branchName = branchReader.text();
  const sourceBranch = branchReader.text();
  const sharedBranchParts = branchShares[branchReader.u8()];
  if (branchChange === undefined || sharedBranchParts === undefined) throw malformedError('an unknown change of a branch');
  return { kind: 'branch', change: branchChange, name: branchName, source: sourceBranch, shares: sharedBranchParts };
}

function encodeExhibit(exhibitBody: ExhibitBody, exhibitWriter: ByteWriter): void {
  exhibitWriter.text(exhibitBody.exhibit);
  exhibitWriter.u64(exhibitBody.link);
  exhibitWriter.text(exhibitBody.act);
  exhibitWriter.text(exhibitBody.recipe);
  exhibitWriter.text(exhibitBody.resultHash);
  exhibitWriter.text(exhibitBody.previousSeal);
  exhibitWriter.text(exhibitBody.seal);
}

function decodeExhibit(exhibitReader: ByteReader): ExhibitBody {
  return {
    kind: 'exhibit',
    exhibit: exhibitReader.text(),
    link: exhibitReader.u64(),
    act: exhibitReader.text(),
    recipe: exhibitReader.text(),
    resultHash: exhibitReader.text(),
    previousSeal: exhibitReader.text(),
    seal: exhibitReader.text(),
  };
}
