/**
 * Bodies of fixed fields as earlier releases wrote them: read for ever, and never written. Frozen with the fixtures in `fixtures/logs/`.
 *
 *   1   fixed fields
 *   2   type: then u8 guard, and of each property an optional text, the type that it references
 *       access: then of each record two optional texts, what it stated to open a guard
 *   4   type as in 2, branch as in 1: the name belongs to the tenant of the entry; view as in 1: the end of the view
 */
import { type ByteReader, malformedError } from '../bytes/byte-stream.ts';
import type { AccessBody, AccessRecord, PropertyDefinition, TypeBody } from './entry.ts';
import { decodeFixed, type FixedBody, type FixedKind } from './fixed-fields.ts';

/** Null: the version is none of these, or has no such kind. */
export function decodeEarlier(bodyVersion: number, fixedKind: FixedKind, earlierReader: ByteReader): FixedBody | null {
  const isKnownVersion =
    bodyVersion === 1 ||
    (bodyVersion === 2 ? fixedKind === 'type' || fixedKind === 'access' : bodyVersion === 4 && isOwnedKind(fixedKind));
  if (!isKnownVersion) return null;
  const earlierBody = decodeFixed(fixedKind, earlierReader);
  if (bodyVersion === 1) return earlierBody;
  switch (earlierBody.kind) {
    case 'type':
      return bodyVersion === 4
        ? { ...withGuard(earlierBody, earlierReader), own: true }
        : requireGuard(withGuard(earlierBody, earlierReader));
    case 'access':
      return withStated(earlierBody, earlierReader);
    case 'branch':
      return { ...earlierBody, own: true };
    case 'view':
      return { ...earlierBody, dropped: true };
    default:
      return earlierBody;
  }
}

function isOwnedKind(kind: FixedKind): boolean {
  return kind === 'type' || kind === 'branch' || kind === 'view';
}

function requireGuard(guardedType: TypeBody): TypeBody {
  const { guard, properties } = guardedType.definition;
  const hasReferences = Object.values(properties).some((property) => property.references !== undefined);
  if (guard === undefined && !hasReferences) throw malformedError('a guarded type without a guard');
  return guardedType;
}

function withGuard({ definition }: TypeBody, guardReader: ByteReader): TypeBody {
  const guardFlags = guardReader.u8();
  if (guardFlags > 3) throw malformedError('an unknown guard of a type');
  const properties = Object.entries(definition.properties).map(([name, property]): [string, PropertyDefinition] => {
    const referencedType = guardReader.optionalText();
    return [name, referencedType === null ? property : { ...property, references: referencedType }];
  });
  const typeGuard = guardFlags === 0 ? {} : { guard: { protected: (guardFlags & 1) !== 0, accessScope: (guardFlags & 2) !== 0 } };
  return { kind: 'type', definition: { ...definition, properties: Object.fromEntries(properties), ...typeGuard } };
}

function withStated({ records }: AccessBody, statedReader: ByteReader): AccessBody {
  const statedAccess = {
    kind: 'access' as const,
    records: records.map((record): AccessRecord => {
      const statedOpening = { breakGlass: statedReader.optionalText(), accessScopeRef: statedReader.optionalText() };
      return statedOpening.breakGlass === null && statedOpening.accessScopeRef === null
        ? record
        : { ...record, stated: statedOpening };
    }),
  };
  if (statedAccess.records.every((record) => record.stated === undefined))
    throw malformedError('access records that state nothing, as if one did');
  return statedAccess;
}
