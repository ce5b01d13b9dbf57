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
  run: resolveIdentityRows,
});

function* resolveIdentityRows(resolveCall: DomainCall): Steps<readonly DomainRow[]> {
  const soughtValue = resolveCall.text('VALUE')!;
  const resolveMode = resolveCall.word('MODE') ?? 'CLUSTER';
  const identityCollections = yield* readCollections(resolveCall);
  const { trained: trainedModelsFound, method: resolvedMethod } = yield* trainedModels(resolveCall, identityCollections);
  const identitySeeds = yield* identitySeedsOf(resolveCall, soughtValue, identityCollections);
  const { snapshot, time } = resolveCall.execution;
  const systemInstant = time.system === 'all' ? snapshot.instant : time.system;
  const identityLinkage = new Linkage(identityCollections, snapshot.judgements(systemInstant), {
    isThere: (row) => hasRow(snapshot, row, time),
    look: (count) => resolveCall.look(count),
    trained: trainedModelsFound,
  });
  const identityClusters = yield* identityLinkage.clustersOf(identitySeeds.map(({ row: seedRow }) => seedRow));
  const seedScores = new Map(identitySeeds.map(({ row: seedRow, by, score }) => [rowId(seedRow), { by, score }]));
  if (resolveMode === 'CLUSTER')
    return identityClusters.flatMap(({ members, canonical }) =>
      members.map((clusterMember) => ({ ...memberRow(clusterMember, canonical, seedScores), method: resolvedMethod })),
    );
  const [bestCluster] = identityClusters.sort(
    (a, b) => seedScore(b, seedScores) - seedScore(a, seedScores) || compareText(a.canonical, b.canonical),
  );
  if (bestCluster === undefined) return [];
  const fusedFields = resolveMode === 'FUSE' ? JSON.stringify(yield* fusedRow(resolveCall, bestCluster)) : null;
  return [{ ...canonicalMemberRow(bestCluster, seedScores, fusedFields), method: resolvedMethod }];
}

type SeedScores = ReadonlyMap<string, { readonly by: string; readonly score: number }>;

function seedScore({ members }: Cluster, seedScores: SeedScores): number {
  return Math.max(...members.map(({ id }) => seedScores.get(id)?.score ?? 0));
}

function memberRow({ id, key, type, score, links, systemFrom }: Member, canonicalKey: string, seedScores: SeedScores): DomainRow {
  const memberSeed = seedScores.get(id);
  const memberEvidence: Json = {
    ...(memberSeed && { found: memberSeed.by, ...(memberSeed.score < 1 && { likeness: memberSeed.score }) }),
    links: links.slice(0, linksShownMax).map((memberLink) => linkEvidence(memberLink, id)),
  };
  return { nodeId: key, type, cells: [canonicalKey, null, null], score, evidence: memberEvidence, systemFrom };
}

function canonicalMemberRow(
  { members, canonical: canonicalKey }: Cluster,
  seedScores: SeedScores,
  fields: string | null,
): DomainRow {
  const [firstMember] = members as readonly [Member];
  const leastScore = Math.min(...members.map((clusterMember) => clusterMember.score));
  const foundBy = members.flatMap(({ id }) => seedScores.get(id)?.by ?? [])[0] ?? null;
  return {
    nodeId: canonicalKey,
    type: firstMember.type,
    cells: [canonicalKey, JSON.stringify(members.map(({ key, type }) => ({ id: key, type }))), fields],
    score: leastScore,
    evidence: {
      found: foundBy,
      links: members.flatMap((clusterMember) =>
        clusterMember.links.slice(0, 1).map((link) => linkEvidence(link, clusterMember.id)),
      ),
    },
    systemFrom: firstMember.systemFrom,
  };
}

const linksShownMax = 16;

function linkEvidence({ a, b, score, bits }: Link, fromRowId: string): Json {
  const [type = '', key = ''] = (a === fromRowId ? b : a).split('\u0000');
  return { to: key, type, score, ...(bits === null ? { by: 'judgement' } : { bits }) };
}

interface IdentitySeed {
  readonly row: NamedRow;
  readonly by: 'id' | 'identifier' | 'name';
  readonly score: number;
}

/** Rows of the id; where there are none, rows with the identifier; where there are none either, rows with such a name. */
function* identitySeedsOf(
  resolveCall: DomainCall,
  soughtValue: string,
  collections: readonly Collection[],
): Steps<IdentitySeed[]> {
  const { snapshot, time } = resolveCall.execution;
  const searchedTypes = resolveCall.types();
  const seedsById = rowsNamed(snapshot, soughtValue, time, searchedTypes.length === 1 ? searchedTypes[0]!.name : undefined);
  if (seedsById.length > 0) return seedsById.map((row) => ({ row, by: 'id', score: 1 }));
  const identifierForms = identifiersIn(soughtValue).map(([kind, form]) => `i ${kind} ${form}`);
  const bareForm = `i - ${soughtValue.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')}`;
  const seedsByIdentifier = collections.flatMap((seedCollection) =>
    [...identifierForms, bareForm].flatMap((formKey) => seedCollection.having(formKey)),
  );
  if (seedsByIdentifier.length > 0) {
    return seedsByIdentifier.map(({ type, nodeId }) => ({ row: { type, key: nodeId }, by: 'identifier', score: 1 }));
  }
  yield;
  return collections.flatMap((seedCollection) => identitySeedsByName(resolveCall, soughtValue, seedCollection));
}

const seedLikenessMin = 0.75;

function identitySeedsByName(resolveCall: DomainCall, soughtName: string, collection: Collection): IdentitySeed[] {
  const nameGroup = collection.groups.findIndex(({ name }) => name === 'name' || name === 'title');
  if (nameGroup < 0) return [];
  const { name, comparison } = collection.groups[nameGroup]!;
  const soughtWords = comparison === 'name' ? wordsOfName(soughtName) : wordsOfText(soughtName).map(textWord);
  const seedCandidates = new Set(soughtWords.flatMap(({ text }) => collection.having(`w ${name} ${text}`)));
  for (const [i, oneWord] of soughtWords.entries()) {
    for (const otherWord of soughtWords.slice(i + 1)) {
      const wordPairKey = `n ${[oneWord.spelling, otherWord.spelling].sort().join(' ')}`;
      for (const seedCandidate of collection.having(wordPairKey)) seedCandidates.add(seedCandidate);
    }
  }
  resolveCall.look(seedCandidates.size * looksPerSeedName);
  return [...seedCandidates].flatMap((seedCandidate): IdentitySeed[] => {
    const nameFeature = seedCandidate.features[nameGroup];
    if (nameFeature?.kind !== 'words') return [];
    const { likeness } = compareWords(soughtWords, nameFeature.words, (text) => collection.bits(nameGroup, text));
    const seedScoreOfName = Math.round(likeness * 1e6) / 1e6;
    return seedScoreOfName < seedLikenessMin
      ? []
      : [{ row: { type: seedCandidate.type, key: seedCandidate.nodeId }, by: 'name', score: seedScoreOfName }];
  });
}

const looksPerSeedName = 50;
