/**
 * Which statements are questions of the catalogue: those that name nothing but its relations, and those without FROM that call what
 * only it has, such as `version()`. All others are the planner's, those that join such relations with types among them.
 */
import { ServiceError } from '../../../errors.ts';
import { bare } from '../bare.ts';
import { marksCatalogue, markingNames } from './functions.ts';
import { parseSelect } from './parser.ts';
import { relationNamed } from './sources.ts';
import { nodesOf, type Path, type Select } from './trees.ts';

/** Something of this is in the text of every such question: most texts are known by it to be none. */
const mark = new RegExp(
  `\\bpg_|information_schema|\\breg(class|type|proc|namespace|role)\\b|\\b(${markingNames.join('|')})\\b`,
  'i',
);
const begins = /^(?:SELECT|WITH|VALUES|TABLE|\()/i;
const source = /(?:\b(?:from|join)\s|,)\s*(?:only\s+)?(?:(pg_catalog|information_schema)\s*\.\s*)?(\w+)/gi;

/** null: it is none. Throws where a text that names relations of the catalogue alone can't be read. */
export function catalogueQuestion(text: string): Select | null {
  if (!begins.test(bare(text)) || !mark.test(text)) return null;
  let select: Select;
  try {
    select = parseSelect(text);
  } catch (error) {
    if (!(error instanceof ServiceError) || namesItAlone(text)) throw error;
    return null;
  }
  const { own, others, isMarked } = namedIn(select);
  if (own.length === 0) return others.length === 0 && isMarked ? select : null;
  return others.length === 0 ? select : null;
}

/** Whether all that it seems to read are relations of the catalogue, where it can't be read as a whole. */
function namesItAlone(text: string): boolean {
  const named = [...text.matchAll(source)].map(([, schema, name]) =>
    schema === undefined ? [name!.toLowerCase()] : [schema, name!],
  );
  return named.length > 0 && named.every(isOwn);
}

interface NamedIn {
  readonly own: readonly string[];
  readonly others: readonly string[];
  /** It calls what only the catalogue has. */
  readonly isMarked: boolean;
}

function namedIn(select: Select): NamedIn {
  const trees = nodesOf(select);
  const given = new Set(trees.flatMap((each) => ('columns' in each && 'select' in each && 'name' in each ? [each.name] : [])));
  const own = new Set<string>();
  const others = new Set<string>();
  let isMarked = false;
  for (const tree of trees) {
    if (!('kind' in tree)) continue;
    if (tree.kind === 'relation') {
      const path = tree.path.join('.');
      if (tree.path.length === 1 && given.has(path)) continue;
      (isOwn(tree.path) ? own : others).add(path);
    } else if (tree.kind === 'call') isMarked ||= isCatalogues(tree.path) || marksCatalogue(tree.path.at(-1)!);
    else if (tree.kind === 'cast') isMarked ||= isCatalogues(tree.type.path) || tree.type.path.at(-1)!.startsWith('reg');
  }
  return { own: [...own], others: [...others], isMarked };
}

const isCatalogues = (path: Path): boolean => path.length === 2 && (path[0] === 'pg_catalog' || path[0] === 'information_schema');

function isOwn(path: Path): boolean {
  return isCatalogues(path) || (path.length === 1 && relationNamed(path) !== null);
}

/** Relations that it reads, for its access record and for what has to be known before it runs. */
export function relationsOf(select: Select): string[] {
  return [...namedIn(select).own].map((path) => (path.includes('.') ? path : `pg_catalog.${path}`)).sort();
}
