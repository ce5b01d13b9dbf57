/** Rewrites statements where a person sorts, filters or moves through time: the statement always says what is shown. */

export const forever = '9223372036854775807';

/** Clauses in the order in which a statement has them. */
const clauseWords = [
  'SELECT',
  'FROM',
  'AS OF',
  'WHERE',
  'GROUP BY',
  'HAVING',
  'RANK BY',
  'COMPUTE',
  'ORDER BY',
  'LIMIT',
  'FACETS',
  'WITH PROVENANCE',
] as const;
type Clause = (typeof clauseWords)[number];

const lexeme = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|[A-Za-z_][\w$]*|\d[\w.]*|\s+|[^]/g;

interface Part {
  readonly clause: Clause | null;
  text: string;
}

/** The statement cut where its outermost clauses begin. */
function cut(sql: string): Part[] {
  const parts: Part[] = [{ clause: null, text: '' }];
  let depth = 0;
  for (const { 0: text, index } of sql.matchAll(lexeme)) {
    if (text === '(') depth++;
    if (text === ')') depth--;
    if (depth === 0 && /^[A-Za-z]/.test(text)) {
      const rest = sql.slice(index).toUpperCase();
      const clause = clauseWords.find((word) => new RegExp(`^${word.replace(' ', '\\s+')}\\b`).test(rest));
      // `FOR UPDATE OF` and aliases (`AS x`) begin no clause.
      if (clause !== undefined) parts.push({ clause, text: '' });
    }
    parts.at(-1)!.text += text;
  }
  return parts;
}

const join = (parts: readonly Part[]): string =>
  parts
    .map(({ text }) => text.trim())
    .filter((text) => text !== '')
    .join('\n');

function place(parts: Part[], clause: Clause, text: string | null): Part[] {
  const without = parts.filter((part) => part.clause !== clause);
  if (text === null) return without;
  const rank = clauseWords.indexOf(clause);
  const at = without.findIndex((part) => part.clause !== null && clauseWords.indexOf(part.clause) > rank);
  without.splice(at === -1 ? without.length : at, 0, { clause, text });
  return without;
}

export const name = (column: string): string => (/^[A-Za-z_]\w*$/.test(column) ? column : `"${column.replaceAll('"', '""')}"`);
export const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** The only type in FROM; null where there are several or none. */
export function typeOf(sql: string): string | null {
  const from = cut(sql).find(({ clause }) => clause === 'FROM')?.text;
  return /^FROM\s+("(?:[^"]|"")+"|[\w.]+)(?:\s+(?:AS\s+)?\w+)?\s*$/i.exec(from?.trim() ?? '')?.[1]?.replaceAll('"', '') ?? null;
}

/** Sorted by a column: up, down, and then as it was. */
export function sortBy(sql: string, column: string): string {
  const parts = cut(sql);
  const before = parts.find(({ clause }) => clause === 'ORDER BY')?.text.trim() ?? '';
  const up = `ORDER BY ${name(column)}`;
  return join(place(parts, 'ORDER BY', before === up ? `${up} DESC` : before === `${up} DESC` ? null : up));
}

export const sortOf = (sql: string): string =>
  cut(sql)
    .find(({ clause }) => clause === 'ORDER BY')
    ?.text.trim() ?? '';

export function addFilter(sql: string, predicate: string): string {
  const parts = cut(sql);
  const where = parts.find(({ clause }) => clause === 'WHERE')?.text.trim();
  return join(place(parts, 'WHERE', where === undefined ? `WHERE ${predicate}` : `${where} AND ${predicate}`));
}

/** Instants as texts; null: now. */
export interface Instants {
  readonly true: string | null;
  readonly believed: string | null;
}

const ours = [
  / AND system_to = 9223372036854775807\b/i,
  /\bsystem_to = 9223372036854775807(?: AND )?/i,
  / AND valid_from <= CURRENT_TIMESTAMP AND valid_to > CURRENT_TIMESTAMP/i,
  /\bvalid_from <= CURRENT_TIMESTAMP AND valid_to > CURRENT_TIMESTAMP(?: AND )?/i,
  / AND system_from <= TIMESTAMP '[^']*' AND system_to > TIMESTAMP '[^']*'/i,
  /\bsystem_from <= TIMESTAMP '[^']*' AND system_to > TIMESTAMP '[^']*'(?: AND )?/i,
];

/** One AS OF, and predicates for the other axis: a statement has no second one. */
export function atInstants(sql: string, { true: truth, believed }: Instants): string {
  let parts = cut(sql);
  const where = parts.find(({ clause }) => clause === 'WHERE');
  if (where) {
    for (const pattern of ours) where.text = where.text.replace(pattern, '');
    if (/^WHERE\s*$/i.test(where.text)) parts = place(parts, 'WHERE', null);
  }
  const asOf =
    truth !== null ? `AS OF ${literal(truth)}` : believed !== null ? `AS OF SYSTEM TIME ${literal(believed)}` : 'AS OF CURRENT';
  const moved = join(place(parts, 'AS OF', asOf));
  if (truth === null) {
    // AS OF SYSTEM TIME is about belief alone.
    return believed === null ? moved : addFilter(moved, 'valid_from <= CURRENT_TIMESTAMP AND valid_to > CURRENT_TIMESTAMP');
  }
  if (believed === null) return addFilter(moved, `system_to = ${forever}`);
  return addFilter(moved, `system_from <= TIMESTAMP ${literal(believed)} AND system_to > TIMESTAMP ${literal(believed)}`);
}

/** The instants that the statement names. */
export function instantsOf(sql: string): Instants {
  const asOf = cut(sql).find(({ clause }) => clause === 'AS OF')?.text ?? '';
  const system = /^AS\s+OF\s+SYSTEM\s+TIME\s+'([^']*)'/i.exec(asOf)?.[1];
  const truth = /^AS\s+OF\s+'([^']*)'/i.exec(asOf)?.[1];
  const predicate = /\bsystem_from <= TIMESTAMP '([^']*)'/i.exec(sql)?.[1];
  return { true: truth ?? null, believed: system ?? predicate ?? null };
}
