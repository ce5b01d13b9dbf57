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

export function writeFieldsOf(body: FixedBody, target: ByteWriter): void {
  switch (body.kind) {
    case 'type':
      return writeTypeFields(body, target);
    case 'access':
      return writeRecordFields(body, target);
    case 'branch':
      return writeFields([[flagField, body.own === true ? nothing : null]], target);
    case 'view':
      return writeFields([[flagField, body.dropped === true ? nothing : null]], target);
    case 'removal': {
      const { sources } = body;
      assert(sources === undefined || sources.length > 0, 'a removal that leads somewhere has sources');
      return writeFields([[sourcesField, sources === undefined ? null : (field) => writeTexts(sources, field)]], target);
    }
    default:
      return target.u8(0);
  }
}

/** `plain` is the body without them. */
export function readFieldsOf(plain: FixedBody, source: ByteReader): FixedBody {
  switch (plain.kind) {
    case 'type':
      return readTypeFields(plain.definition, source);
    case 'access':
      return readRecordFields(plain, source);
    case 'branch':
      return readFlag(source) ? { ...plain, own: true } : plain;
    case 'view':
      return readFlag(source) ? { ...plain, dropped: true } : plain;
    case 'removal': {
      let sources: readonly string[] | null = null;
      readFields(source, (tag, field) => {
        if (tag !== sourcesField) return false;
        sources = someTexts(field);
        return true;
      });
      return sources === null ? plain : { ...plain, sources };
    }
    default:
      readFields(source, () => false);
      return plain;
  }
}

/** `own` of a branch and `dropped` of a view: a field without bytes. */
const flagField = 1;
const sourcesField = 1;
const nothing = (): void => undefined;

function readFlag(source: ByteReader): boolean {
  let flag = false;
  readFields(source, (tag) => {
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

function writeTypeFields({ definition, own }: TypeBody, target: ByteWriter): void {
  const { properties, guard, edge, role, identifier, language, roleColumns, identifierKinds } = definition;
  const references = Object.values(properties).flatMap(({ references: to }, number) =>
    to === undefined ? [] : [{ number, to }],
  );
  assert(identifier === undefined || identifier.length > 0, 'an identifier has properties');
  writeFields(
    [
      [typeField.own, own === true ? nothing : null],
      [typeField.guard, guard === undefined ? null : (field) => field.u8(+guard.protected | (+guard.accessScope << 1))],
      [
        typeField.references,
        references.length === 0
          ? null
          : (field) => {
              field.u32(references.length);
              for (const { number, to } of references) {
                field.u32(number);
                field.text(to);
              }
            },
      ],
      [
        typeField.edge,
        edge === undefined
          ? null
          : (field) => {
              field.text(edge.from);
              field.text(edge.to);
            },
      ],
      [typeField.role, role === undefined ? null : (field) => field.text(role)],
      [typeField.identifier, identifier === undefined ? null : (field) => writeTexts(identifier, field)],
      [typeField.language, language === undefined ? null : (field) => field.text(language)],
      [typeField.roleColumns, roleColumns === undefined ? null : (field) => writePairs(roleColumns, field)],
      [typeField.identifierKinds, identifierKinds === undefined ? null : (field) => writePairs(identifierKinds, field)],
    ],
    target,
  );
}

type MoreOfType = 'guard' | 'edge' | 'role' | 'identifier' | 'language' | 'roleColumns' | 'identifierKinds';

function readTypeFields(plain: TypeDefinition, source: ByteReader): TypeBody {
  let properties = plain.properties;
  let own = false;
  const more: { -readonly [K in MoreOfType]?: TypeDefinition[K] } = {};
  readFields(source, (tag, field) => {
    switch (tag) {
      case typeField.own:
        own = true;
        return true;
      case typeField.guard: {
        const flags = field.u8();
        if (flags === 0 || flags > 3) throw malformedError('an unknown guard of a type');
        more.guard = { protected: (flags & 1) !== 0, accessScope: (flags & 2) !== 0 };
        return true;
      }
      case typeField.references:
        properties = withReferences(properties, field);
        return true;
      case typeField.edge:
        more.edge = { from: field.text(), to: field.text() };
        return true;
      case typeField.role:
        more.role = field.text();
        return true;
      case typeField.identifier:
        more.identifier = someTexts(field);
        return true;
      case typeField.language:
        more.language = field.text();
        return true;
      case typeField.roleColumns:
        more.roleColumns = readPairs(field);
        return true;
      case typeField.identifierKinds:
        more.identifierKinds = readPairs(field);
        return true;
      default:
        return false;
    }
  });
  const definition = { ...plain, properties, ...more } as TypeDefinition;
  return own ? { kind: 'type', definition, own } : { kind: 'type', definition };
}

/** Names and what each stands for, one after the other, in the order of the names. */
function writePairs(pairs: Readonly<Record<string, string>>, target: ByteWriter): void {
  const entries = Object.entries(pairs).sort(([a], [b]) => (a < b ? -1 : 1));
  assert(entries.length > 0, 'pairs are some');
  writeTexts(entries.flat(), target);
}

function readPairs(field: ByteReader): Readonly<Record<string, string>> {
  const texts = someTexts(field);
  if (texts.length % 2 !== 0) throw malformedError('a name that stands for nothing');
  const pairs: Record<string, string> = Object.create(null);
  for (let i = 0; i < texts.length; i += 2) {
    if (i > 0 && texts[i]! <= texts[i - 2]!) throw malformedError('names out of order');
    pairs[texts[i]!] = texts[i + 1]!;
  }
  return pairs;
}

function withReferences(properties: TypeDefinition['properties'], field: ByteReader): TypeDefinition['properties'] {
  const entries = Object.entries(properties);
  let last = -1;
  const count = field.count(8);
  if (count === 0) throw malformedError('references of no property');
  for (let left = count; left > 0; left--) {
    const number = field.u32();
    const entry = entries[number];
    if (entry === undefined || number <= last) throw malformedError('a reference of no property, or out of order');
    last = number;
    const property: PropertyDefinition = { ...entry[1], references: field.text() };
    entries[number] = [entry[0], property];
  }
  return Object.fromEntries(entries);
}

const recordField = { stated: 1, statements: 2, recalled: 3 } as const;

function writeRecordFields({ records }: AccessBody, target: ByteWriter): void {
  for (const { stated, statements, recalled } of records) {
    // Nearly every record: one is written for each request.
    if (stated === undefined && statements === undefined && recalled === undefined) {
      target.u8(0);
      continue;
    }
    assert(statements === undefined || statements.length > 0, 'a record lists statements or none');
    assert(recalled === undefined || recalled.ids.length > 0, 'what is recalled is something');
    writeFields(
      [
        [
          recordField.stated,
          stated === undefined
            ? null
            : (field) => {
                field.optionalText(stated.breakGlass);
                field.optionalText(stated.accessScopeRef);
              },
        ],
        [recordField.statements, statements === undefined ? null : (field) => writeStatements(statements, field)],
        [
          recordField.recalled,
          recalled === undefined
            ? null
            : (field) => {
                field.text(recalled.salt);
                writeTexts(recalled.ids, field);
              },
        ],
      ],
      target,
    );
  }
}

function readRecordFields(plain: AccessBody, source: ByteReader): AccessBody {
  const records = plain.records.map((record): AccessRecord => {
    const more: { -readonly [K in 'stated' | 'statements' | 'recalled']?: AccessRecord[K] } = {};
    readFields(source, (tag, field) => {
      switch (tag) {
        case recordField.stated: {
          const stated = { breakGlass: field.optionalText(), accessScopeRef: field.optionalText() };
          if (stated.breakGlass === null && stated.accessScopeRef === null) throw malformedError('what is stated says nothing');
          more.stated = stated;
          return true;
        }
        case recordField.statements:
          more.statements = readStatements(field);
          return true;
        case recordField.recalled:
          more.recalled = readRecalled(field);
          return true;
        default:
          return false;
      }
    });
    return { ...record, ...more } as AccessRecord;
  });
  return { kind: 'access', records };
}

function writeStatements(statements: readonly StatementRecord[], field: ByteWriter): void {
  field.u32(statements.length);
  for (const { template, literalDigest, objectType, rowCount } of statements) {
    field.optionalText(template);
    field.optionalText(literalDigest);
    field.optionalText(objectType);
    field.u64(rowCount);
  }
}

function readStatements(field: ByteReader): readonly StatementRecord[] {
  const statements: StatementRecord[] = [];
  for (let left = field.count(11); left > 0; left--) {
    statements.push({
      template: field.optionalText(),
      literalDigest: field.optionalText(),
      objectType: field.optionalText(),
      rowCount: field.u64(),
    });
  }
  if (statements.length === 0) throw malformedError('a list of no statements');
  return statements;
}

function readRecalled(field: ByteReader): Recalled {
  return { salt: field.text(), ids: someTexts(field) };
}

export function writeOpen({ content }: OpenBody, target: ByteWriter, sealed: readonly SealedVectors[] | null): void {
  if (isEmbedded(content)) return writeEmbedded(content, sealed, target);
  const isText = typeof content === 'string';
  target.u8(isText ? 1 : 0);
  if (isText) {
    assert(isCanonical(content), 'JSON of an open body has its one spelling');
    return target.text(content);
  }
  target.u32(content.length);
  target.raw(content);
}

export function readOpen(kind: OpenBody['kind'], source: ByteReader, subjects: SubjectOpener): OpenBody {
  const form = source.u8();
  if (form === 2 && kind === 'embedding') return { kind, content: readEmbedded(source, subjects) };
  if (form > 1) throw malformedError('an open body of an unknown form');
  if (form === 0) return { kind, content: source.raw(source.u32()).slice() };
  const content = source.text();
  if (!isCanonical(content)) throw malformedError('JSON in another spelling, or none');
  return { kind, content };
}

function isCanonical(text: string): boolean {
  try {
    const value = JSON.parse(text) as Json;
    return isShallow(value, limits.jsonDepth) && canonicalJson(value) === text;
  } catch {
    return false;
  }
}

function writeTexts(texts: readonly string[], field: ByteWriter): void {
  field.u32(texts.length);
  for (const text of texts) field.text(text);
}

function someTexts(field: ByteReader): readonly string[] {
  const texts: string[] = [];
  for (let left = field.count(4); left > 0; left--) texts.push(field.text());
  if (texts.length === 0) throw malformedError('a list of nothing');
  return texts;
}
