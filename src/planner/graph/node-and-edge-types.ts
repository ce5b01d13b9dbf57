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

const closingErrorCodes: ReadonlySet<string> = new Set(['REL_ACL', 'REL_HUMINT', 'REL_ACCESS_SCOPE', 'REL_PROTECTED_COLUMN']);

/**
 * Whether an error says that a type may not be read. Such a type, if the statement did not name it, counts as having no edges and
 * no nodes.
 */
export function isClosed(error: unknown): boolean {
  return error instanceof ServiceError && closingErrorCodes.has(error.code);
}

/** Whether the caller may not read a type: it then counts as empty. */
export function isClosedType({ catalog, offers }: Pick<GovernedSnapshot, 'catalog' | 'offers'>, type: string): boolean {
  return catalog.type(type) !== undefined && !offers(type);
}

/** Its rows are at one end of the edges that they are: a person with a manager is a node, too. */
function isEndOwnKey(nodeDefinition: TypeDefinition): boolean {
  const edgeEnds = endsOf(nodeDefinition);
  const ownKeyColumns = [nodeDefinition.primaryKey, 'id', '_pk'];
  return edgeEnds !== null && (ownKeyColumns.includes(edgeEnds.from) || ownKeyColumns.includes(edgeEnds.to));
}

/** The graph that a call is about: what TYPE, LINK and LINK_TYPES say, or all of it. */
export function graphTypes(catalog: CatalogReader, graphWords: Words): GraphTypes {
  const typeName = graphWords.word('TYPE');
  const typeDefinition = typeName === undefined ? undefined : requireGraphType(catalog, typeName, 'TYPE', graphWords);
  const linkTypeNames = namedLinkTypes(graphWords);
  // A call may name the edge type alone: then every end of these edges is a node.
  const isEdgeType =
    typeDefinition !== undefined && linkTypeNames === null && endsOf(typeDefinition) !== null && !isEndOwnKey(typeDefinition);
  const graphLinks = isEdgeType
    ? [linkNamed(typeDefinition, graphWords.locationOf('TYPE'))]
    : linkTypesOf(catalog, linkTypeNames, graphWords);
  if (typeDefinition !== undefined && !isEdgeType) {
    const joins = (endProperty: string, { name }: LinkType): boolean => {
      const referencedType = catalog.type(name)!.properties[endProperty]?.references;
      return referencedType === undefined || referencedType === typeName;
    };
    return {
      links: graphLinks.filter((link) => link.named || (joins(link.ends.from, link) && joins(link.ends.to, link))),
      nodes: [{ name: typeName!, named: true }],
      isolated: true,
    };
  }
  return { links: graphLinks, nodes: nodeTypesOfLinks(catalog, graphLinks), isolated: false };
}

/** Names that LINK or LINK_TYPES give, each once; null: every type of edges is meant. */
function namedLinkTypes(graphWords: Words): readonly string[] | null {
  const givenLinkNames = [graphWords.word('LINK'), ...(graphWords.word('LINK_TYPES')?.split(',') ?? [])];
  const linkTypeNames = givenLinkNames.flatMap((name) => (name === undefined || name.trim() === '' ? [] : [name.trim()]));
  return linkTypeNames.length === 0 ? null : [...new Set(linkTypeNames)];
}

function linkTypesOf(catalog: CatalogReader, linkTypeNames: readonly string[] | null, graphWords: Words): readonly LinkType[] {
  const linkArgument = graphWords.given.has('LINK') ? 'LINK' : 'LINK_TYPES';
  const linkTypes =
    linkTypeNames === null
      ? catalog.types().flatMap((edgeDefinition): LinkType[] => {
          const edgeEnds = endsOf(edgeDefinition);
          return edgeEnds === null ? [] : [{ name: edgeDefinition.name, ends: edgeEnds, named: false }];
        })
      : linkTypeNames.map((name) =>
          linkNamed(requireGraphType(catalog, name, linkArgument, graphWords), graphWords.locationOf(linkArgument)),
        );
  return [...linkTypes].sort((a, b) => compareText(a.name, b.name));
}

/** Throws where its rows are no edges. */
export function linkNamed(edgeDefinition: TypeDefinition, location: Location): LinkType {
  const edgeEnds = endsOf(edgeDefinition);
  if (edgeEnds !== null) return { name: edgeDefinition.name, ends: edgeEnds, named: true };
  const notEdgesProblem = `rows of ${JSON.stringify(edgeDefinition.name)} are no edges: its type declares no edge, and has no from_id and to_id`;
  throw errorAt('REL_INVALID', notEdgesProblem, location);
}

/** Names of the types whose rows are nodes, whether or not an edge names them. */
export function nodeTypes(catalog: CatalogReader): readonly string[] {
  return sortedTypeNames(catalog, isNode);
}

export function edgeTypes(catalog: CatalogReader): readonly string[] {
  return sortedTypeNames(catalog, (each) => endsOf(each) !== null);
}

function sortedTypeNames(catalog: CatalogReader, isOf: (definition: TypeDefinition) => boolean): readonly string[] {
  return catalog
    .types()
    .filter(isOf)
    .map(({ name }) => name)
    .sort(compareText);
}

/** Whether rows of a type are nodes, whether or not an edge names them. */
export function isNode(definition: TypeDefinition): boolean {
  return endsOf(definition) === null || isEndOwnKey(definition);
}

function requireGraphType(catalog: CatalogReader, name: string, argument: string, graphWords: Words): TypeDefinition {
  const requiredType = catalog.type(name);
  if (requiredType !== undefined) return requiredType;
  throw errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(name)} is not registered`, graphWords.locationOf(argument));
}

/** Types whose rows the ends of these edges may name. */
function nodeTypesOfLinks(catalog: CatalogReader, graphLinks: readonly LinkType[]): readonly NodeType[] {
  const referencedTypes = new Set<string>();
  let hasOpenEnd = false;
  for (const { name, ends } of graphLinks) {
    for (const edgeEnd of [ends.from, ends.to]) {
      const referencedType = catalog.type(name)!.properties[edgeEnd]?.references;
      if (referencedType === undefined) hasOpenEnd = true;
      else referencedTypes.add(referencedType);
    }
  }
  const referencedNodes = catalog.types().filter((each) => referencedTypes.has(each.name) || (hasOpenEnd && isNode(each)));
  return referencedNodes.map(({ name }) => ({ name, named: false }));
}
