/** Names of catalogue objects, and the numbers behind them. */
import { type Constraint, type CatalogueContents, indexOf, keyedName, keyName } from './catalogue-contents.ts';
import { relationOids } from './relation-oids.ts';
import { procedures } from './procedure-rows.ts';
import { quotedName } from '../expressions/quoted-name.ts';
import { detailsOf, type Names, type ReferenceKind, typeNamed, typesByOid, wireOf } from './catalogue-types.ts';

export const namespaces = { pg_catalog: 11, public: 2200, information_schema: 13_000 } as const;

/** The owner of objects that no user made. */
export const owner = { oid: 10, name: 'annals' } as const;
export const userOid = 16_384;

const relationNamesByOid: ReadonlyMap<number, string> = new Map([...relationOids].map(([name, oid]) => [oid, name]));

/** The parts of a name as it is written, unquoted words in lower case; null: it is none. */
function parseNameParts(text: string): { readonly name: string; readonly quotedText: string }[] | null {
  const nameParts: { name: string; quotedText: string }[] = [];
  const namePartPattern = /\s*(?:"((?:[^"]|"")+)"|([^\s".]+))\s*(\.|$)/y;
  for (;;) {
    const match = namePartPattern.exec(text);
    if (match === null) return null;
    const [, quotedPart, plainPart, partSeparator] = match;
    const partName = quotedPart?.replaceAll('""', '"') ?? plainPart!.toLowerCase();
    nameParts.push({ name: partName, quotedText: quotedPart === undefined ? plainPart! : partName });
    if (partSeparator === '') return nameParts;
  }
}

export class CatalogueNames implements Names {
  readonly #catalogueFacts: CatalogueContents;

  constructor(catalogueFacts: CatalogueContents) {
    this.#catalogueFacts = catalogueFacts;
  }

  nameOf(referenceKind: ReferenceKind, referencedOid: number): string | null {
    switch (referenceKind) {
      case 'regclass':
        return this.#relationNameOf(referencedOid);
      case 'regtype': {
        const typeName = typesByOid.get(referencedOid);
        return typeName === undefined ? null : detailsOf(typeName).formatted;
      }
      case 'regproc':
        return procedures.find((objectOid) => objectOid.oid === referencedOid)?.name ?? null;
      case 'regoper':
      case 'regoperator':
        return null;
      case 'regnamespace':
        return Object.entries(namespaces).find(([, objectOid]) => objectOid === referencedOid)?.[0] ?? null;
      case 'regrole':
        return this.roleName(referencedOid);
    }
  }

  oidOf(referenceKind: ReferenceKind, referenceText: string): number | null {
    const nameParts = parseNameParts(referenceKind === 'regproc' ? referenceText.replace(/\(.*$/s, '') : referenceText);
    if (referenceKind === 'regtype') return regtypeOid(referenceText);
    if (nameParts === null || nameParts.length > 2) return null;
    const { name, quotedText } = nameParts.at(-1)!;
    const nameSchema = nameParts.length === 2 ? nameParts[0]!.name : null;
    switch (referenceKind) {
      case 'regclass':
        return this.#relationOidOf(nameSchema, name, quotedText);
      case 'regproc': {
        const namesakes = procedures.filter(
          (procedure) => procedure.name === name && (nameSchema === null || nameSchema === procedure.schema),
        );
        return namesakes.length === 1 ? namesakes[0]!.oid : null;
      }
      case 'regoper':
      case 'regoperator':
        return null;
      case 'regnamespace':
        return nameSchema === null && Object.hasOwn(namespaces, name) ? namespaces[name as keyof typeof namespaces] : null;
      case 'regrole':
        return name === owner.name ? owner.oid : quotedText === this.#catalogueFacts.session.user ? userOid : null;
    }
  }

  roleName(oid: number): string | null {
    return oid === owner.oid ? owner.name : oid === userOid ? this.#catalogueFacts.session.user : null;
  }

  #relationNameOf(relationOid: number): string | null {
    const namedTable = this.#catalogueFacts.tableOf(relationOid);
    if (namedTable) {
      if (relationOid === namedTable.oid) return quotedName(namedTable.name);
      return relationOid === indexOf(namedTable) && namedTable.key ? quotedName(keyName(namedTable)) : null;
    }
    const relationName = relationNamesByOid.get(relationOid);
    return relationName === undefined ? null : relationName.replace(/^pg_catalog\./, '');
  }

  /** A name without quotes is looked for as it is written first: names of types keep their case here, quotes or not. */
  #relationOidOf(nameSchema: string | null, name: string, quotedText: string): number | null {
    if (nameSchema === null || nameSchema === 'public') {
      for (const candidateName of [quotedText, name]) {
        const namedTable = this.#catalogueFacts.tableNamed(candidateName);
        if (namedTable) return namedTable.oid;
        const keyedTable = candidateName.endsWith('_pkey')
          ? this.#catalogueFacts.tableNamed(keyedName(candidateName))
          : undefined;
        if (keyedTable?.key) return indexOf(keyedTable);
      }
    }
    return relationOids.get(`${nameSchema ?? 'pg_catalog'}.${name}`) ?? null;
  }

  /** Names a constraint, as `pg_get_constraintdef` is asked for it. */
  constraint(oid: number): Constraint | null {
    return this.#catalogueFacts.tables.constraint(oid) ?? null;
  }
}

function regtypeOid(regtypeText: string): number | null {
  const plainTypeText = regtypeText.trim().replace(/^pg_catalog\./, '');
  const isArrayType = plainTypeText.endsWith('[]');
  const bareTypeText = (isArrayType ? plainTypeText.slice(0, -2) : plainTypeText).replace(/\(\d+(,\d+)?\)$/, '');
  const regtype = bareTypeText.startsWith('"')
    ? typeNamed(bareTypeText.slice(1, -1), true)
    : typeNamed(bareTypeText.toLowerCase());
  if (regtype === null) return null;
  const { oid, array } = wireOf(regtype);
  return isArrayType ? array || null : oid;
}
