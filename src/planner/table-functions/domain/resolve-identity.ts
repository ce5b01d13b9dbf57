/** RESOLVE_IDENTITY: the rows that are one thing. Source: specification, "SQL dialect", the table of operators. */
import { compareText } from '../../../log/values/value.ts';
import type { Json } from '../../../log/values/canonical-json.ts';
import { identifiersIn } from '../../../projections/entity-resolution/identifiers.ts';
import type { Steps } from '../../graph/stepped-sort.ts';
import { hasRow, type NamedRow, rowsNamed } from '../../identity/named-rows.ts';
import { rowId } from '../../identity/judged-clusters.ts';
import type { TableFunction } from '../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from './domain-function.ts';
import type { Collection } from './identity/compared-rows.ts';
import { readCollections } from './identity/compared-types.ts';
import { resolveMethod, trainedModels } from './identity/model-rows.ts';
import { compareWords } from './identity/likelihood.ts';
import { fusedRow } from './identity/fused-row.ts';
import { type Cluster, type Link, Linkage, type Member } from './identity/linkage.ts';
import { textWord, wordsOfName, wordsOfText } from './identity/word-similarity.ts';

export const resolveIdentity: TableFunction = domainFunction({
  name: 'RESOLVE_IDENTITY',
  summary: 'Rows that are one person, company or thing, found by an identifier, a name or an id of one of them.',
  method: resolveMethod,
  arguments: [
    { name: 'VALUE', kind: 'key', required: true, summary: 'an identifier, a name, or the id of a row' },
    {
      name: 'MODE',
      kind: 'word',
      choices: ['CLUSTER', 'CANONICAL', 'FUSE'],
      summary: 'all rows of the cluster (the default), one row that stands for it, or one merged by rules',
    },
  ],
  roles: [],
  everyType: true,
  beside: 'identity_model',
  columns: [
    { name: 'canonical', type: 'string' },
    { name: 'members', type: 'json' },
    { name: 'fields', type: 'json' },
  ],
  run: resolve,
});

function* resolve(call: DomainCall): Steps<readonly DomainRow[]> {
  const value = call.text('VALUE')!;
  const mode = call.word('MODE') ?? 'CLUSTER';
  const collections = yield* readCollections(call);
  const { trained, method } = yield* trainedModels(call, collections);
  const seeds = yield* seedsOf(call, value, collections);
  const { snapshot, time } = call.execution;
  const system = time.system === 'all' ? snapshot.instant : time.system;
  const linkage = new Linkage(collections, snapshot.judgements(system), {
    isThere: (row) => hasRow(snapshot, row, time),
    look: (count) => call.look(count),
    trained,
  });
  const clusters = yield* linkage.clustersOf(seeds.map(({ row }) => row));
  const seedScores = new Map(seeds.map(({ row, by, score }) => [rowId(row), { by, score }]));
  if (mode === 'CLUSTER')
    return clusters.flatMap(({ members, canonical }) =>
      members.map((each) => ({ ...rowOf(each, canonical, seedScores), method })),
    );
  const [best] = clusters.sort(
    (a, b) => foundScore(b, seedScores) - foundScore(a, seedScores) || compareText(a.canonical, b.canonical),
  );
  if (best === undefined) return [];
  const fields = mode === 'FUSE' ? JSON.stringify(yield* fusedRow(call, best)) : null;
  return [{ ...canonicalRow(best, seedScores, fields), method }];
}

type SeedScores = ReadonlyMap<string, { readonly by: string; readonly score: number }>;

function foundScore({ members }: Cluster, seedScores: SeedScores): number {
  return Math.max(...members.map(({ id }) => seedScores.get(id)?.score ?? 0));
}

function rowOf({ id, key, type, score, links, systemFrom }: Member, canonical: string, seedScores: SeedScores): DomainRow {
  const seed = seedScores.get(id);
  const evidence: Json = {
    ...(seed && { found: seed.by, ...(seed.score < 1 && { likeness: seed.score }) }),
    links: links.slice(0, linksShown).map((link) => linkJson(link, id)),
  };
  return { nodeId: key, type, cells: [canonical, null, null], score, evidence, systemFrom };
}

function canonicalRow({ members, canonical }: Cluster, seedScores: SeedScores, fields: string | null): DomainRow {
  const [first] = members as readonly [Member];
  const score = Math.min(...members.map((each) => each.score));
  const by = members.flatMap(({ id }) => seedScores.get(id)?.by ?? [])[0] ?? null;
  return {
    nodeId: canonical,
    type: first.type,
    cells: [canonical, JSON.stringify(members.map(({ key, type }) => ({ id: key, type }))), fields],
    score,
    evidence: { found: by, links: members.flatMap((each) => each.links.slice(0, 1).map((link) => linkJson(link, each.id))) },
    systemFrom: first.systemFrom,
  };
}

const linksShown = 16;

function linkJson({ a, b, score, bits }: Link, from: string): Json {
  const [type = '', key = ''] = (a === from ? b : a).split('\u0000');
  return { to: key, type, score, ...(bits === null ? { by: 'judgement' } : { bits }) };
}

interface Seed {
  readonly row: NamedRow;
  readonly by: 'id' | 'identifier' | 'name';
  readonly score: number;
}

/** Rows of the id; where there are none, rows with the identifier; where there are none either, rows with such a name. */
function* seedsOf(call: DomainCall, value: string, collections: readonly Collection[]): Steps<Seed[]> {
  const { snapshot, time } = call.execution;
  const types = call.types();
  const byId = rowsNamed(snapshot, value, time, types.length === 1 ? types[0]!.name : undefined);
  if (byId.length > 0) return byId.map((row) => ({ row, by: 'id', score: 1 }));
  const forms = identifiersIn(value).map(([kind, form]) => `i ${kind} ${form}`);
  const bare = `i - ${value.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')}`;
  const byIdentifier = collections.flatMap((each) => [...forms, bare].flatMap((key) => each.having(key)));
  if (byIdentifier.length > 0) {
    return byIdentifier.map(({ type, nodeId }) => ({ row: { type, key: nodeId }, by: 'identifier', score: 1 }));
  }
  yield;
  return collections.flatMap((each) => seedsByName(call, value, each));
}

const nameLikenessMin = 0.75;

function seedsByName(call: DomainCall, value: string, collection: Collection): Seed[] {
  const at = collection.groups.findIndex(({ name }) => name === 'name' || name === 'title');
  if (at < 0) return [];
  const { name, comparison } = collection.groups[at]!;
  const words = comparison === 'name' ? wordsOfName(value) : wordsOfText(value).map(textWord);
  const candidates = new Set(words.flatMap(({ text }) => collection.having(`w ${name} ${text}`)));
  for (const [i, one] of words.entries()) {
    for (const other of words.slice(i + 1)) {
      const key = `n ${[one.spelling, other.spelling].sort().join(' ')}`;
      for (const each of collection.having(key)) candidates.add(each);
    }
  }
  call.look(candidates.size * looksPerName);
  return [...candidates].flatMap((each): Seed[] => {
    const feature = each.features[at];
    if (feature?.kind !== 'words') return [];
    const { likeness } = compareWords(words, feature.words, (text) => collection.bits(at, text));
    const score = Math.round(likeness * 1e6) / 1e6;
    return score < nameLikenessMin ? [] : [{ row: { type: each.type, key: each.nodeId }, by: 'name', score }];
  });
}

const looksPerName = 50;
