/**
 * Fields that a body may have besides the fixed ones, by tags (`../bytes/tagged-fields.ts`), and bodies of open kinds:
 *
 *   type     1 own, 2 guard, 3 references, 4 edge, 5 role, 6 identifier, 7 language, 8 role columns,
 *            9 identifier kinds
 *   access   of each record: 1 stated, 2 statements, 3 recalled
 *   branch   1 own            view   1 dropped            removal  1 sources            every other kind: none yet
 *   open     u8 form (0 bytes, 1 JSON), u32 size, bytes; form 2: see `embedded-vectors.ts`
 */
import { assert } from '../../errors.ts';
import { canonicalJson, type Json } from '../values/canonical-json.ts';
import { type ByteReader, type ByteWriter, malformedError } from '../bytes/byte-stream.ts';
import type {
  AccessBody,
  AccessRecord,
  OpenBody,
  PropertyDefinition,
  Recalled,
  StatementRecord,
  TypeBody,
  TypeDefinition,
} from './entry.ts';
import type { FixedBody } from './fixed-fields.ts';
import { isEmbedded, readEmbedded, type SealedVectors, writeEmbedded } from './embedded-vectors.ts';
import { isShallow } from './record-codec.ts';
import type { SubjectOpener } from './rows-codec.ts';
import { readFields, writeFields } from '../bytes/tagged-fields.ts';
import { limits } from '../values/value.ts';

export function writeFieldsOf(fixedBody: FixedBody, fieldWriter: ByteWriter): void {
  switch (fixedBody.kind) {
    case 'type':
      return writeTypeFields(fixedBody, fieldWriter);
    case 'access':
      return writeRecordFields(fixedBody, fieldWriter);
    case 'branch':
      return writeFields([[flagField, fixedBody.own === true ? writeNoValue : null]], fieldWriter);
    case 'view':
      return writeFields([[flagField, fixedBody.dropped === true ? writeNoValue : null]], fieldWriter);
    case 'removal': {
      const { sources } = fixedBody;
      assert(sources === undefined || sources.length > 0, 'a removal that leads somewhere has sources');
      return writeFields(
        [[sourcesField, sources === undefined ? null : (sourcesWriter) => writeFieldTexts(sources, sourcesWriter)]],
        fieldWriter,
      );
    }
    default:
      return fieldWriter.u8(0);
  }
}

/** `fixedBody` is the body without them. */
export function readFieldsOf(fixedBody: FixedBody, fieldReader: ByteReader): FixedBody {
  switch (fixedBody.kind) {
    case 'type':
      return readTypeFields(fixedBody.definition, fieldReader);
    case 'access':
      return readRecordFields(fixedBody, fieldReader);
    case 'branch':
      return readFlagField(fieldReader) ? { ...fixedBody, own: true } : fixedBody;
    case 'view':
      return readFlagField(fieldReader) ? { ...fixedBody, dropped: true } : fixedBody;
    case 'removal': {
      let removalSources: readonly string[] | null = null;
      readFields(fieldReader, (fieldTag, sourcesReader) => {
        if (fieldTag !== sourcesField) return false;
        removalSources = readFieldTexts(sourcesReader);
        return true;
      });
      return removalSources === null ? fixedBody : { ...fixedBody, sources: removalSources };
    }
    default:
      readFields(fieldReader, () => false);
      return fixedBody;
  }
}

/** `own` of a branch and `dropped` of a view: a field without bytes. */
const flagField = 1;
const sourcesField = 1;
const writeNoValue = (): void => undefined;

function readFlagField(fieldReader: ByteReader): boolean {
  let flag = false;
  readFields(fieldReader, (tag) => {
    if (tag !== flagField) return false;
    flag = true;
    return true;
  });
  return flag;
}

const typeField = {
  own: 1,
  guard: 2,
  references: 3,
  edge: 4,
  role: 5,
  identifier: 6,
  language: 7,
  roleColumns: 8,
  identifierKinds: 9,
} as const;

function writeTypeFields({ definition, own }: TypeBody, typeWriter: ByteWriter): void {
  const { properties, guard, edge, role, identifier, language, roleColumns, identifierKinds } = definition;
  const references = Object.values(properties).flatMap(({ references: to }, number) =>
    to === undefined ? [] : [{ number, to }],
  );
  assert(identifier === undefined || identifier.length > 0, 'an identifier has properties');
  writeFields(
    [
      [typeField.own, own === true ? writeNoValue : null],
      [
        typeField.guard,
        guard === undefined ? null : (typeFieldWriter) => typeFieldWriter.u8(+guard.protected | (+guard.accessScope << 1)),
      ],
      [
        typeField.references,
        references.length === 0
          ? null
          : (typeFieldWriter) => {
              typeFieldWriter.u32(references.length);
              for (const { number, to } of references) {
                typeFieldWriter.u32(number);
                typeFieldWriter.text(to);
              }
            },
      ],
      [
        typeField.edge,
        edge === undefined
          ? null
          : (typeFieldWriter) => {
              typeFieldWriter.text(edge.from);
              typeFieldWriter.text(edge.to);
            },
      ],
      [typeField.role, role === undefined ? null : (typeFieldWriter) => typeFieldWriter.text(role)],
      [typeField.identifier, identifier === undefined ? null : (typeFieldWriter) => writeFieldTexts(identifier, typeFieldWriter)],
      [typeField.language, language === undefined ? null : (typeFieldWriter) => typeFieldWriter.text(language)],
      [
        typeField.roleColumns,
        roleColumns === undefined ? null : (typeFieldWriter) => writeNamePairs(roleColumns, typeFieldWriter),
      ],
      [
        typeField.identifierKinds,
        identifierKinds === undefined ? null : (typeFieldWriter) => writeNamePairs(identifierKinds, typeFieldWriter),
      ],
    ],
    typeWriter,
  );
}

type OptionalTypePart = 'guard' | 'edge' | 'role' | 'identifier' | 'language' | 'roleColumns' | 'identifierKinds';

function readTypeFields(fixedDefinition: TypeDefinition, typeFieldReader: ByteReader): TypeBody {
  let properties = fixedDefinition.properties;
  let isOwn = false;
  const optionalTypeParts: { -readonly [K in OptionalTypePart]?: TypeDefinition[K] } = {};
  readFields(typeFieldReader, (typeFieldTag, typeFieldBytes) => {
    switch (typeFieldTag) {
      case typeField.own:
        isOwn = true;
        return true;
      case typeField.guard: {
        const guardFlags = typeFieldBytes.u8();
        if (guardFlags === 0 || guardFlags > 3) throw malformedError('an unknown guard of a type');
        optionalTypeParts.guard = { protected: (guardFlags & 1) !== 0, accessScope: (guardFlags & 2) !== 0 };
        return true;
      }
      case typeField.references:
        properties = withReferences(properties, typeFieldBytes);
        return true;
      case typeField.edge:
        optionalTypeParts.edge = { from: typeFieldBytes.text(), to: typeFieldBytes.text() };
        return true;
      case typeField.role:
        optionalTypeParts.role = typeFieldBytes.text();
        return true;
      case typeField.identifier:
        optionalTypeParts.identifier = readFieldTexts(typeFieldBytes);
        return true;
      case typeField.language:
        optionalTypeParts.language = typeFieldBytes.text();
        return true;
      case typeField.roleColumns:
        optionalTypeParts.roleColumns = readNamePairs(typeFieldBytes);
        return true;
      case typeField.identifierKinds:
        optionalTypeParts.identifierKinds = readNamePairs(typeFieldBytes);
        return true;
      default:
        return false;
    }
  });
  const definition = { ...fixedDefinition, properties, ...optionalTypeParts } as TypeDefinition;
  return isOwn ? { kind: 'type', definition, own: isOwn } : { kind: 'type', definition };
}

/** Names and what each stands for, one after the other, in the order of the names. */
function writeNamePairs(namesByName: Readonly<Record<string, string>>, pairWriter: ByteWriter): void {
  const namePairs = Object.entries(namesByName).sort(([a], [b]) => (a < b ? -1 : 1));
  assert(namePairs.length > 0, 'pairs are some');
  writeFieldTexts(namePairs.flat(), pairWriter);
}

function readNamePairs(pairReader: ByteReader): Readonly<Record<string, string>> {
  const pairTexts = readFieldTexts(pairReader);
  if (pairTexts.length % 2 !== 0) throw malformedError('a name that stands for nothing');
  const namePairs: Record<string, string> = Object.create(null);
  for (let i = 0; i < pairTexts.length; i += 2) {
    if (i > 0 && pairTexts[i]! <= pairTexts[i - 2]!) throw malformedError('names out of order');
    namePairs[pairTexts[i]!] = pairTexts[i + 1]!;
  }
  return namePairs;
}

function withReferences(typeProperties: TypeDefinition['properties'], referenceReader: ByteReader): TypeDefinition['properties'] {
  const propertyEntries = Object.entries(typeProperties);
  let lastPropertyNumber = -1;
  const referenceCount = referenceReader.count(8);
  if (referenceCount === 0) throw malformedError('references of no property');
  for (let referencesLeft = referenceCount; referencesLeft > 0; referencesLeft--) {
    const propertyNumber = referenceReader.u32();
    const propertyEntry = propertyEntries[propertyNumber];
    if (propertyEntry === undefined || propertyNumber <= lastPropertyNumber)
      throw malformedError('a reference of no property, or out of order');
    lastPropertyNumber = propertyNumber;
    const referencingProperty: PropertyDefinition = { ...propertyEntry[1], references: referenceReader.text() };
    propertyEntries[propertyNumber] = [propertyEntry[0], referencingProperty];
  }
  return Object.fromEntries(propertyEntries);
}

const accessRecordField = { stated: 1, statements: 2, recalled: 3 } as const;

function writeRecordFields({ records }: AccessBody, recordWriter: ByteWriter): void {
  for (const { stated, statements, recalled } of records) {
    // Nearly every record: one is written for each request.
    if (stated === undefined && statements === undefined && recalled === undefined) {
      recordWriter.u8(0);
      continue;
    }
    assert(statements === undefined || statements.length > 0, 'a record lists statements or none');
    assert(recalled === undefined || recalled.ids.length > 0, 'what is recalled is something');
    writeFields(
      [
        [
          accessRecordField.stated,
          stated === undefined
            ? null
            : (recordFieldWriter) => {
                recordFieldWriter.optionalText(stated.breakGlass);
                recordFieldWriter.optionalText(stated.accessScopeRef);
              },
        ],
        [
          accessRecordField.statements,
          statements === undefined ? null : (recordFieldWriter) => writeStatements(statements, recordFieldWriter),
        ],
        [
          accessRecordField.recalled,
          recalled === undefined
            ? null
            : (recordFieldWriter) => {
                recordFieldWriter.text(recalled.salt);
                writeFieldTexts(recalled.ids, recordFieldWriter);
              },
        ],
      ],
      recordWriter,
    );
  }
}

function readRecordFields(fixedAccess: AccessBody, recordReader: ByteReader): AccessBody {
  const records = fixedAccess.records.map((accessRecord): AccessRecord => {
    const recordAdditions: { -readonly [K in 'stated' | 'statements' | 'recalled']?: AccessRecord[K] } = {};
    readFields(recordReader, (recordFieldTag, recordFieldReader) => {
      switch (recordFieldTag) {
        case accessRecordField.stated: {
          const stated = { breakGlass: recordFieldReader.optionalText(), accessScopeRef: recordFieldReader.optionalText() };
          if (stated.breakGlass === null && stated.accessScopeRef === null) throw malformedError('what is stated says nothing');
          recordAdditions.stated = stated;
          return true;
        }
        case accessRecordField.statements:
          recordAdditions.statements = readStatements(recordFieldReader);
          return true;
        case accessRecordField.recalled:
          recordAdditions.recalled = readRecalled(recordFieldReader);
          return true;
        default:
          return false;
      }
    });
    return { ...accessRecord, ...recordAdditions } as AccessRecord;
  });
  return { kind: 'access', records };
}

function writeStatements(statements: readonly StatementRecord[], statementWriter: ByteWriter): void {
  statementWriter.u32(statements.length);
  for (const { template, literalDigest, objectType, rowCount } of statements) {
    statementWriter.optionalText(template);
    statementWriter.optionalText(literalDigest);
    statementWriter.optionalText(objectType);
    statementWriter.u64(rowCount);
  }
}

function readStatements(statementReader: ByteReader): readonly StatementRecord[] {
  const statements: StatementRecord[] = [];
  for (let statementsLeft = statementReader.count(11); statementsLeft > 0; statementsLeft--) {
    statements.push({
      template: statementReader.optionalText(),
      literalDigest: statementReader.optionalText(),
      objectType: statementReader.optionalText(),
      rowCount: statementReader.u64(),
    });
  }
  if (statements.length === 0) throw malformedError('a list of no statements');
  return statements;
}

function readRecalled(recalledReader: ByteReader): Recalled {
  return { salt: recalledReader.text(), ids: readFieldTexts(recalledReader) };
}

export function writeOpen(
  { content: openContent }: OpenBody,
  openBodyWriter: ByteWriter,
  sealedEmbedding: readonly SealedVectors[] | null,
): void {
  if (isEmbedded(openContent)) return writeEmbedded(openContent, sealedEmbedding, openBodyWriter);
  const isTextContent = typeof openContent === 'string';
  openBodyWriter.u8(isTextContent ? 1 : 0);
  if (isTextContent) {
    assert(isCanonicalJson(openContent), 'JSON of an open body has its one spelling');
    return openBodyWriter.text(openContent);
  }
  openBodyWriter.u32(openContent.length);
  openBodyWriter.raw(openContent);
}

export function readOpen(openKind: OpenBody['kind'], openBodyReader: ByteReader, subjects: SubjectOpener): OpenBody {
  const openBodyForm = openBodyReader.u8();
  if (openBodyForm === 2 && openKind === 'embedding') return { kind: openKind, content: readEmbedded(openBodyReader, subjects) };
  if (openBodyForm > 1) throw malformedError('an open body of an unknown form');
  if (openBodyForm === 0) return { kind: openKind, content: openBodyReader.raw(openBodyReader.u32()).slice() };
  const openText = openBodyReader.text();
  if (!isCanonicalJson(openText)) throw malformedError('JSON in another spelling, or none');
  return { kind: openKind, content: openText };
}

function isCanonicalJson(jsonText: string): boolean {
  try {
    const parsedJson = JSON.parse(jsonText) as Json;
    return isShallow(parsedJson, limits.jsonDepth) && canonicalJson(parsedJson) === jsonText;
  } catch {
    return false;
  }
}

function writeFieldTexts(fieldTexts: readonly string[], textWriter: ByteWriter): void {
  textWriter.u32(fieldTexts.length);
  for (const fieldText of fieldTexts) textWriter.text(fieldText);
}

function readFieldTexts(textReader: ByteReader): readonly string[] {
  const fieldTexts: string[] = [];
  for (let textsLeft = textReader.count(4); textsLeft > 0; textsLeft--) fieldTexts.push(textReader.text());
  if (fieldTexts.length === 0) throw malformedError('a list of nothing');
  return fieldTexts;
}
