/**
 * Which types a question about a graph reads. Rows are edges where their type says so (`edge`), or has a text for either end,
 * `from_id` and `to_id`, as types of graph triggers have. Rows of every other type are nodes, called by `id`, else by `_pk`; those of
 * a type of edges are where an end references it, or is the row itself.
 */
import type { EdgeColumns, TypeDefinition } from '../../log/entries/entry.ts';
import { ServiceError } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import { compareText } from '../../log/values/value.ts';
import type { CatalogReader } from '../../projections/access-paths.ts';
import { endsOf } from '../../projections/catalog/edge-columns.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Location } from '../syntax/statement.ts';
import type { Words } from '../calls/argument-spec.ts';

/** A type whose rows are edges. */
export interface LinkType {
  readonly name: string;
  readonly ends: EdgeColumns;
  /** The caller named it: then not to be allowed to read it is an error. */
  readonly named: boolean;
}

/** A type whose rows are nodes. */
export interface NodeType {
  readonly name: string;
  readonly named: boolean;
}

export interface GraphTypes {
  /** The link types, in codepoint order. */
  readonly links: readonly LinkType[];
  readonly nodes: readonly NodeType[];
  /** Rows of the node types are nodes, whether or not an edge names them. */
  readonly isolated: boolean;
}

const closedBy: ReadonlySet<string> = new Set(['REL_ACL', 'REL_HUMINT', 'REL_ACCESS_SCOPE', 'REL_PROTECTED_COLUMN']);

/**
 * Whether an error says that a type may not be read. Such a type, if the statement did not name it, counts as having no edges and
 * no nodes.
 */
export function isClosed(error: unknown): boolean {
  return error instanceof ServiceError && closedBy.has(error.code);
}

/** Whether the caller may not read a type: it then counts as empty. */
export function isClosedType({ catalog, offers }: Pick<GovernedSnapshot, 'catalog' | 'offers'>, type: string): boolean {
  return catalog.type(type) !== undefined && !offers(type);
}

/** Its rows are at one end of the edges that they are: a person with a manager is a node, too. */
function isOwnEnd(definition: TypeDefinition): boolean {
  const ends = endsOf(definition);
  const own = [definition.primaryKey, 'id', '_pk'];
  return ends !== null && (own.includes(ends.from) || own.includes(ends.to));
}

/** The graph that a call is about: what TYPE, LINK and LINK_TYPES say, or all of it. */
export function graphTypes(catalog: CatalogReader, words: Words): GraphTypes {
  const type = words.word('TYPE');
  const definition = type === undefined ? undefined : requireType(catalog, type, 'TYPE', words);
  const names = linkNames(words);
  // A call may name the edge type alone: then every end of these edges is a node.
  const ofEdges = definition !== undefined && names === null && endsOf(definition) !== null && !isOwnEnd(definition);
  const links = ofEdges ? [linkNamed(definition, words.locationOf('TYPE'))] : linksOf(catalog, names, words);
  if (definition !== undefined && !ofEdges) {
    const joins = (property: string, { name }: LinkType): boolean => {
      const references = catalog.type(name)!.properties[property]?.references;
      return references === undefined || references === type;
    };
    return {
      links: links.filter((link) => link.named || (joins(link.ends.from, link) && joins(link.ends.to, link))),
      nodes: [{ name: type!, named: true }],
      isolated: true,
    };
  }
  return { links, nodes: nodeTypesOf(catalog, links), isolated: false };
}

/** Names that LINK or LINK_TYPES give, each once; null: every type of edges is meant. */
function linkNames(words: Words): readonly string[] | null {
  const given = [words.word('LINK'), ...(words.word('LINK_TYPES')?.split(',') ?? [])];
  const names = given.flatMap((name) => (name === undefined || name.trim() === '' ? [] : [name.trim()]));
  return names.length === 0 ? null : [...new Set(names)];
}

function linksOf(catalog: CatalogReader, names: readonly string[] | null, words: Words): readonly LinkType[] {
  const argument = words.given.has('LINK') ? 'LINK' : 'LINK_TYPES';
  const links =
    names === null
      ? catalog.types().flatMap((each): LinkType[] => {
          const ends = endsOf(each);
          return ends === null ? [] : [{ name: each.name, ends, named: false }];
        })
      : names.map((name) => linkNamed(requireType(catalog, name, argument, words), words.locationOf(argument)));
  return [...links].sort((a, b) => compareText(a.name, b.name));
}

/** Throws where its rows are no edges. */
export function linkNamed(definition: TypeDefinition, location: Location): LinkType {
  const ends = endsOf(definition);
  if (ends !== null) return { name: definition.name, ends, named: true };
  const text = `rows of ${JSON.stringify(definition.name)} are no edges: its type declares no edge, and has no from_id and to_id`;
  throw errorAt('REL_INVALID', text, location);
}

/** Names of the types whose rows are nodes, whether or not an edge names them. */
export function nodeTypes(catalog: CatalogReader): readonly string[] {
  return namesOf(catalog, isNode);
}

export function edgeTypes(catalog: CatalogReader): readonly string[] {
  return namesOf(catalog, (each) => endsOf(each) !== null);
}

function namesOf(catalog: CatalogReader, isOf: (definition: TypeDefinition) => boolean): readonly string[] {
  return catalog
    .types()
    .filter(isOf)
    .map(({ name }) => name)
    .sort(compareText);
}

/** Whether rows of a type are nodes, whether or not an edge names them. */
export function isNode(definition: TypeDefinition): boolean {
  return endsOf(definition) === null || isOwnEnd(definition);
}

function requireType(catalog: CatalogReader, name: string, argument: string, words: Words): TypeDefinition {
  const definition = catalog.type(name);
  if (definition !== undefined) return definition;
  throw errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(name)} is not registered`, words.locationOf(argument));
}

/** Types whose rows the ends of these edges may name. */
function nodeTypesOf(catalog: CatalogReader, links: readonly LinkType[]): readonly NodeType[] {
  const referenced = new Set<string>();
  let isOpen = false;
  for (const { name, ends } of links) {
    for (const end of [ends.from, ends.to]) {
      const references = catalog.type(name)!.properties[end]?.references;
      if (references === undefined) isOpen = true;
      else referenced.add(references);
    }
  }
  const types = catalog.types().filter((each) => referenced.has(each.name) || (isOpen && isNode(each)));
  return types.map(({ name }) => ({ name, named: false }));
}
