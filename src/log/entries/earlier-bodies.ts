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
export function decodeEarlier(version: number, kind: FixedKind, source: ByteReader): FixedBody | null {
  const known = version === 1 || (version === 2 ? kind === 'type' || kind === 'access' : version === 4 && isOwned(kind));
  if (!known) return null;
  const body = decodeFixed(kind, source);
  if (version === 1) return body;
  switch (body.kind) {
    case 'type':
      return version === 4 ? { ...withGuard(body, source), own: true } : requireGuard(withGuard(body, source));
    case 'access':
      return withStated(body, source);
    case 'branch':
      return { ...body, own: true };
    case 'view':
      return { ...body, dropped: true };
    default:
      return body;
  }
}

function isOwned(kind: FixedKind): boolean {
  return kind === 'type' || kind === 'branch' || kind === 'view';
}

function requireGuard(body: TypeBody): TypeBody {
  const { guard, properties } = body.definition;
  const references = Object.values(properties).some((property) => property.references !== undefined);
  if (guard === undefined && !references) throw malformedError('a guarded type without a guard');
  return body;
}

function withGuard({ definition }: TypeBody, source: ByteReader): TypeBody {
  const flags = source.u8();
  if (flags > 3) throw malformedError('an unknown guard of a type');
  const properties = Object.entries(definition.properties).map(([name, property]): [string, PropertyDefinition] => {
    const references = source.optionalText();
    return [name, references === null ? property : { ...property, references }];
  });
  const guard = flags === 0 ? {} : { guard: { protected: (flags & 1) !== 0, accessScope: (flags & 2) !== 0 } };
  return { kind: 'type', definition: { ...definition, properties: Object.fromEntries(properties), ...guard } };
}

function withStated({ records }: AccessBody, source: ByteReader): AccessBody {
  const body = {
    kind: 'access' as const,
    records: records.map((record): AccessRecord => {
      const stated = { breakGlass: source.optionalText(), accessScopeRef: source.optionalText() };
      return stated.breakGlass === null && stated.accessScopeRef === null ? record : { ...record, stated };
    }),
  };
  if (body.records.every((record) => record.stated === undefined))
    throw malformedError('access records that state nothing, as if one did');
  return body;
}
