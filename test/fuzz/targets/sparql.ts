/**
 * SPARQL queries of any bytes. What must hold: nothing but a ServiceError is thrown, a place is one of the text, no constant is in the
 * template or in the tree, and the SQL beside them is a statement of the same template.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { parseStatement } from '../../../src/planner/languages/sql-parser.ts';
import { readSparql } from '../../../src/planner/languages/sparql.ts';

export const name = 'sparql';

const canary = 'c4n4ry';

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return queries.map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  try {
    const { question, sql } = readSparql(text);
    const { template, statement, parameters } = question;
    if (!/[?$_:]\w*c4n4ry/.test(text)) {
      assert(!template.includes(canary), 'the template holds no constant');
      assert(!JSON.stringify(statement).includes(canary), 'the tree holds no constant');
    }
    parameters.forEach((_, slot) => checkPlace(text, question.locationOf(slot)));
    if (question.parameters.some((value) => String(value).includes('\0'))) return;
    const again = parseStatement(sql);
    // SQL has no row without a column: a solution that binds nothing is that of SELECT 1.
    const values: readonly unknown[] = sql.startsWith('SELECT 1') ? [1n, ...parameters] : parameters;
    assert(again.parameters.length === values.length, 'the SQL has the same values');
    assert(
      again.parameters.every((value) => values.includes(value)),
      'and no others',
    );
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { line, column } = error.facts;
    if (line !== undefined) checkPlace(text, { line, column: column! });
    throw error;
  }
}

function checkPlace(text: string, { line, column }: { readonly line: number; readonly column: number }): void {
  const lines = text.split(/\r\n|\n|\r/);
  assert(line >= 1 && line <= lines.length, 'the line is one of the text');
  assert(column >= 1 && column <= lines[line - 1]!.length + 1, 'the column is in its line');
}

const queries = [
  `INSERT${' '.repeat(99)}{`,
  `DELETE${' #\n\t'.repeat(99)}{`,
  `INSERT${' #\n\t'.repeat(99)}DATA { <a> <b> 1 }`,
  'SELECT * { }',
  'SELECT ?x { <c4n4ry> <b> <c> } LIMIT 1',
  'SELECT * { ?s ?p ?o . ?y!\n\r$s ?p ?o }',
  'SELECT * { ?s ?p ?o . ?y!\n\r\n\r$s ?p ?o }',
  'SELECT ?s ?p ?o WHERE { ?s ?p ?o } LIMIT 10',
  'PREFIX e: <http://e.x/> SELECT * { e:a e:b ?x ; e:c "c4n4ry" , 5 , 1.5e3 , true . ?x a e:D }',
  `SELECT ?x { ?x <c4n4ry> 'it''s' . ?y prov:wasDerivedFrom ?x }`,
  'BASE <http://b/> SELECT ?x { <../a> <b> [ <c> ?x ; <d> ( 1 ?x ) ] . _:n <p> _:m }',
  'SELECT ?x { ?x <p> """a "long" c4n4ry""" } # end',
  'SELECT ?größe { ?größe <é> "\\u00e9\\n" }',
  'SELECT ?x { ?x <p>/<q>*|^<r> ?y OPTIONAL { ?x ?y ?z } FILTER(?z < 5) } ORDER BY ?x OFFSET 2',
  'CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }',
  'INSERT DATA { <a> <b> "c4n4ry"@en }',
  'SELECT (COUNT(DISTINCT ?x) AS ?n) { { ?x ?y ?z } UNION { GRAPH <g> { ?x ?y ?z } } } GROUP BY ?y HAVING (?n > 1)',
  `SELECT * { ${'?s ?p ?o . '.repeat(60)} }`,
  '{'.repeat(3_000),
  `SELECT * { ?s ?p ${'('.repeat(30)} }`,
  'SELECT ?x { ?x <p> "\\uD800" }',
];
