/** What is asked in other languages than SQL, over the types that the worlds hold. */
import { getIntrospectionQuery } from 'graphql';

const query = (text: string, more: object = {}): object => ({ query: text, ...more });
const filtered = 'query ($f: DealWhere, $n: Int) { Deal(where: $f, limit: $n) { id who amount note } }';

/** Bodies of POST /graphql. */
export const documents: readonly object[] = [
  query('{ Deal { id who amount note rate system_from __typename } }'),
  query('{ Deal(where: { id: "x1" }) { id amount } }'),
  query('{ Deal(where: { _pk: "d1" }, limit: 1) { _pk note valid_to } }'),
  query('{ Deal(where: { tenant_id: "acme" }) { id } }'),
  query('{ Deal(where: { secret: "s-1" }) { id } }'),
  query('{ Deal { id secret } }'),
  query('{ Deal { id } }', { as_of_system: '2024-01-01T00:00:02.500Z' }),
  query('{ Deal { id } }', { asOf: '2024-01-01T00:00:02.000Z', branch: 'trial' }),
  query(filtered, { variables: { f: { who: 'p1', note: 'open' }, n: 3 } }),
  query(filtered, { variables: { f: { note: 'secret' } } }),
  query('{ Party { id name score } }'),
  query('{ by_note { note n } }'),
  query('{ hidden_view { note n } }'),
  query('{ Dossier { id } }'),
  query('{ Vault { id } }'),
  ...['LetterLink', 'NoticeLink', 'TaleLink'].map((name) => query(`{ ${name} { from_id to_id subject } }`)),
  query('{ Hidden { id } }'),
  query('{ Hiden { id } }'),
  query('{ Deal { amuont } }'),
  query('{ SourceTrueIdentity { id } }'),
  query('mutation { Deal { id } }'),
  query(getIntrospectionQuery()),
  query('{ __type(name: "Hidden") { name fields { name } } }'),
  query('{ __type(name: "Deal") { name fields { name type { name } } } }'),
];

/** Queries of /sparql: triples, and where rows of every type come from. */
export const patterns: readonly string[] = [
  'SELECT ?s ?p ?o { ?s ?p ?o }',
  'SELECT ?s ?o { ?s <knows> ?o } LIMIT 2',
  'SELECT ?a ?c { ?a ?p ?b . ?b ?q ?c }',
  'SELECT ?row ?how { ?row prov:wasGeneratedBy ?how }',
  'SELECT ?row ?who { ?row prov:wasAttributedTo ?who } LIMIT 3',
  'SELECT ?row ?at { ?row prov:generatedAtTime ?at }',
  'SELECT ?row ?who { ?row prov:wasDerivedFrom ?before . ?row prov:wasAttributedTo ?who }',
  'SELECT ?s ?o { ?s <urn:annals:LetterLink:to_id> ?o }',
  'SELECT ?s ?o { ?s <urn:annals:TaleLink:subject> ?o }',
  'SELECT ?p { <18a0c0ffee000000> prov:wasAttributedTo ?p }',
  'SELECT ?s { ?s ?p ?o } ORDER BY ?s',
  'SELECT ?s {',
];
