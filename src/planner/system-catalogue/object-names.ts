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

const relationsByOid: ReadonlyMap<number, string> = new Map([...relationOids].map(([name, oid]) => [oid, name]));

/** The parts of a name as it is written, unquoted words in lower case; null: it is none. */
function partsOf(text: string): { readonly name: string; readonly quotedText: string }[] | null {
  const parts: { name: string; quotedText: string }[] = [];
  const pattern = /\s*(?:"((?:[^"]|"")+)"|([^\s".]+))\s*(\.|$)/y;
  for (;;) {
    const match = pattern.exec(text);
    if (match === null) return null;
    const [, quoted, plain, end] = match;
    const name = quoted?.replaceAll('""', '"') ?? plain!.toLowerCase();
    parts.push({ name, quotedText: quoted === undefined ? plain! : name });
    if (end === '') return parts;
  }
}

export class CatalogueNames implements Names {
  readonly #facts: CatalogueContents;

  constructor(facts: CatalogueContents) {
    this.#facts = facts;
  }

  nameOf(kind: ReferenceKind, oid: number): string | null {
    switch (kind) {
      case 'regclass':
        return this.#className(oid);
      case 'regtype': {
        const type = typesByOid.get(oid);
        return type === undefined ? null : detailsOf(type).formatted;
      }
      case 'regproc':
        return procedures.find((each) => each.oid === oid)?.name ?? null;
      case 'regoper':
      case 'regoperator':
        return null;
      case 'regnamespace':
        return Object.entries(namespaces).find(([, each]) => each === oid)?.[0] ?? null;
      case 'regrole':
        return this.roleName(oid);
    }
  }

  oidOf(kind: ReferenceKind, text: string): number | null {
    const parts = partsOf(kind === 'regproc' ? text.replace(/\(.*$/s, '') : text);
    if (kind === 'regtype') return typeOid(text);
    if (parts === null || parts.length > 2) return null;
    const { name, quotedText } = parts.at(-1)!;
    const schema = parts.length === 2 ? parts[0]!.name : null;
    switch (kind) {
      case 'regclass':
        return this.#classOid(schema, name, quotedText);
      case 'regproc': {
        const namesakes = procedures.filter((each) => each.name === name && (schema === null || schema === each.schema));
        return namesakes.length === 1 ? namesakes[0]!.oid : null;
      }
      case 'regoper':
      case 'regoperator':
        return null;
      case 'regnamespace':
        return schema === null && Object.hasOwn(namespaces, name) ? namespaces[name as keyof typeof namespaces] : null;
      case 'regrole':
        return name === owner.name ? owner.oid : quotedText === this.#facts.session.user ? userOid : null;
    }
  }

  roleName(oid: number): string | null {
    return oid === owner.oid ? owner.name : oid === userOid ? this.#facts.session.user : null;
  }

  #className(oid: number): string | null {
    const table = this.#facts.tableOf(oid);
    if (table) {
      if (oid === table.oid) return quotedName(table.name);
      return oid === indexOf(table) && table.key ? quotedName(keyName(table)) : null;
    }
    const relation = relationsByOid.get(oid);
    return relation === undefined ? null : relation.replace(/^pg_catalog\./, '');
  }

  /** A name without quotes is looked for as it is written first: names of types keep their case here, quotes or not. */
  #classOid(schema: string | null, name: string, quotedText: string): number | null {
    if (schema === null || schema === 'public') {
      for (const each of [quotedText, name]) {
        const table = this.#facts.tableNamed(each);
        if (table) return table.oid;
        const keyed = each.endsWith('_pkey') ? this.#facts.tableNamed(keyedName(each)) : undefined;
        if (keyed?.key) return indexOf(keyed);
      }
    }
    return relationOids.get(`${schema ?? 'pg_catalog'}.${name}`) ?? null;
  }

  /** Names a constraint, as `pg_get_constraintdef` is asked for it. */
  constraint(oid: number): Constraint | null {
    return this.#facts.tables.constraint(oid) ?? null;
  }
}

function typeOid(text: string): number | null {
  const plain = text.trim().replace(/^pg_catalog\./, '');
  const isArray = plain.endsWith('[]');
  const bare = (isArray ? plain.slice(0, -2) : plain).replace(/\(\d+(,\d+)?\)$/, '');
  const type = bare.startsWith('"') ? typeNamed(bare.slice(1, -1), true) : typeNamed(bare.toLowerCase());
  if (type === null) return null;
  const { oid, array } = wireOf(type);
  return isArray ? array || null : oid;
}
