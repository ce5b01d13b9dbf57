/**
 * Clusters of rows that are one thing, found from some of them outwards. Rows are linked where they are more likely one than two, or were
 * judged to be one; links are followed in the order of their scores, and none is that would bring together rows that were judged to be
 * two. A cluster is the same whichever of its rows it is found from.
 */
import { ServiceError } from '../../../../errors.ts';
import { compareText } from '../../../../log/values/value.ts';
import type { Judgement } from '../../../../projections/access-paths.ts';
import { sortItemsInSteps, type Steps } from '../../../graph/stepped-sort.ts';
import { Clusters, newestOfPairs, rowId } from '../../../identity/judged-clusters.ts';
import type { NamedRow } from '../../../identity/named-rows.ts';
import type { Collection, Entity } from './compared-rows.ts';
import { likelihoodOf, type Trained } from './likelihood.ts';

/** Two rows that are one thing. */
export interface Link {
  readonly a: string;
  readonly b: string;
  readonly score: number;
  /** By group of columns, in bits; null where somebody said so. */
  readonly bits: Readonly<Record<string, number>> | null;
}

export interface Member extends NamedRow {
  readonly id: string;
  /** That of its best link within the cluster; 1 of a row that is alone. */
  readonly score: number;
  /** Best first. */
  readonly links: readonly Link[];
  readonly systemFrom: bigint | null;
}

/** Members by id, and the smallest key among them. */
export interface Cluster {
  readonly members: readonly Member[];
  readonly canonical: string;
}

/** More rows than that are no one thing: a value that many share joins them. */
const clusterMembersMax = 4_096;
const linkLooksPerPair = 100;
const linkPairsAtOnce = 256;

export class Linkage {
  readonly #linkedCollections: ReadonlyMap<string, Collection>;
  readonly #judgementsByRow = new Map<string, Judgement[]>();
  /** Whether a row that is in no collection is there for the caller. */
  readonly #isRowThere: (row: NamedRow) => boolean;
  readonly #countLinkLooks: (count: number) => void;
  readonly #trainedByCollection: ReadonlyMap<Collection, Trained>;
  #comparedPairs = 0;

  constructor(
    collections: readonly Collection[],
    judgements: readonly Judgement[],
    {
      isThere,
      look,
      trained,
    }: {
      isThere: (judgedRow: NamedRow) => boolean;
      look: (count: number) => void;
      /** By collection; one that is missing is weighed by built-in weights, and so are rows of two types. */
      trained: ReadonlyMap<Collection, Trained>;
    },
  ) {
    this.#linkedCollections = new Map(collections.map((pairJudgement) => [pairJudgement.type, pairJudgement]));
    this.#isRowThere = isThere;
    this.#countLinkLooks = look;
    this.#trainedByCollection = trained;
    for (const each of newestOfPairs(judgements)) {
      for (const judgedRow of [each.a, each.b]) {
        const rowJudgements = this.#judgementsByRow.get(rowId(judgedRow));
        if (rowJudgements === undefined) this.#judgementsByRow.set(rowId(judgedRow), [each]);
        else rowJudgements.push(each);
      }
    }
  }

  /** The cluster of each of some rows; of two in one cluster, one. */
  *clustersOf(seeds: readonly NamedRow[]): Steps<Cluster[]> {
    const linkedClusters: Cluster[] = [];
    const clusteredRows = new Set<string>();
    for (const seedRow of seeds) {
      if (clusteredRows.has(rowId(seedRow))) continue;
      const seedCluster = yield* this.#linkCluster(seedRow);
      for (const { id } of seedCluster.members) clusteredRows.add(id);
      linkedClusters.push(seedCluster);
    }
    return linkedClusters;
  }

  *#linkCluster(seedRow: NamedRow): Steps<Cluster> {
    const clusterRows = new Map<string, NamedRow>([[rowId(seedRow), seedRow]]);
    const clusterLinks = new Map<string, Link>();
    const clusterJudgements = new Set<Judgement>();
    // Rows are added while the loop goes on.
    for (const [id, clusterRow] of clusterRows) {
      if (clusterRows.size > clusterMembersMax)
        throw new ServiceError(
          'REL_SCAN_CAP',
          `more than ${clusterMembersMax} rows hang together: name a type with SOURCE, or split some`,
        );
      for (const judgement of this.#judgementsByRow.get(id) ?? []) {
        const otherJudgedRow = rowId(judgement.a) === id ? judgement.b : judgement.a;
        if (!this.#seesRow(otherJudgedRow)) continue;
        clusterJudgements.add(judgement);
        if (judgement.judgement === 'positive') clusterRows.set(rowId(otherJudgedRow), otherJudgedRow);
      }
      for (const link of yield* this.#candidateLinks(clusterRow, clusterLinks)) {
        clusterLinks.set(linkKey(link), link);
        for (const linkEnd of [link.a, link.b]) if (!clusterRows.has(linkEnd)) clusterRows.set(linkEnd, namedRowOf(linkEnd));
      }
    }
    const judgementsWithin = [...clusterJudgements]
      .filter(({ a, b }) => clusterRows.has(rowId(a)) && clusterRows.has(rowId(b)))
      .sort((oneLink, otherLink) => oneLink.position - otherLink.position);
    const rowClusters = new Clusters(judgementsWithin);
    const sortedLinks = yield* sortItemsInSteps(
      [...clusterLinks.values()],
      (oneLink, otherLink) => otherLink.score - oneLink.score || compareText(linkKey(oneLink), linkKey(otherLink)),
    );
    for (const { a, b } of sortedLinks) rowClusters.join(a, b);
    const memberIds = rowClusters.membersOf(rowId(seedRow));
    const linksOfMembers = [
      ...judgementsWithin.filter(({ judgement }) => judgement === 'positive').map(judgedLink),
      ...sortedLinks,
    ].filter(({ a, b }) => memberIds.has(a) && memberIds.has(b));
    return linkedCluster(
      [...memberIds].map((id) => clusterRows.get(id)!),
      linksOfMembers,
      (row) => this.#entityOf(row)?.systemFrom ?? null,
    );
  }

  /** Links of a row to others that are not known yet. */
  *#candidateLinks(row: NamedRow, knownLinks: ReadonlyMap<string, Link>): Steps<Link[]> {
    const rowEntity = this.#entityOf(row);
    const ownCollection = this.#linkedCollections.get(row.type);
    if (rowEntity === undefined || ownCollection === undefined) return [];
    const entityKeys = ownCollection.keysOf(rowEntity);
    const links: Link[] = [];
    for (const candidateCollection of this.#linkedCollections.values()) {
      const trainedOfOwn = candidateCollection === ownCollection ? (this.#trainedByCollection.get(ownCollection) ?? null) : null;
      for (const candidateEntity of candidateCollection.withKeys(entityKeys, ownCollection)) {
        if (candidateEntity === rowEntity) continue;
        if (++this.#comparedPairs % linkPairsAtOnce === 0) {
          this.#countLinkLooks(linkPairsAtOnce * linkLooksPerPair);
          yield;
        }
        // The smaller id first: sums run in one order, whichever of the two is asked about.
        const isEntityFirst =
          (compareText(rowEntity.type, candidateEntity.type) || compareText(rowEntity.nodeId, candidateEntity.nodeId)) < 0;
        const linkLikelihood = isEntityFirst
          ? likelihoodOf(rowEntity, ownCollection, candidateEntity, candidateCollection, trainedOfOwn)
          : likelihoodOf(candidateEntity, candidateCollection, rowEntity, ownCollection, trainedOfOwn);
        if (linkLikelihood === null) continue;
        const candidateId = rowId({ type: candidateEntity.type, key: candidateEntity.nodeId });
        const candidateLink = {
          a: isEntityFirst ? rowId(row) : candidateId,
          b: isEntityFirst ? candidateId : rowId(row),
          ...linkLikelihood,
        };
        if (!knownLinks.has(linkKey(candidateLink))) links.push(candidateLink);
      }
    }
    return links;
  }

  #entityOf({ type, key }: NamedRow): Entity | undefined {
    return this.#linkedCollections.get(type)?.find(key);
  }

  #seesRow(row: NamedRow): boolean {
    return this.#entityOf(row) !== undefined || this.#isRowThere(row);
  }
}

function linkedCluster(
  clusterRows: readonly NamedRow[],
  clusterLinks: readonly Link[],
  systemFrom: (row: NamedRow) => bigint | null,
): Cluster {
  const linksByRow = new Map<string, Link[]>();
  for (const link of clusterLinks) {
    for (const id of [link.a, link.b]) {
      const ownLinks = linksByRow.get(id);
      if (ownLinks === undefined) linksByRow.set(id, [link]);
      else ownLinks.push(link);
    }
  }
  const clusterMembers = clusterRows.map((row): Member => {
    const id = rowId(row);
    const ownLinks = linksByRow.get(id) ?? [];
    return { ...row, id, score: ownLinks[0]?.score ?? 1, links: ownLinks, systemFrom: systemFrom(row) };
  });
  clusterMembers.sort(
    (oneMember, otherMember) => compareText(oneMember.key, otherMember.key) || compareText(oneMember.type, otherMember.type),
  );
  return { members: clusterMembers, canonical: clusterMembers[0]!.key };
}

function judgedLink({ a, b }: Judgement): Link {
  const [leftRow, rightRow] = inRowOrder(rowId(a), rowId(b));
  return { a: leftRow, b: rightRow, score: 1, bits: null };
}

function linkKey({ a, b }: Link): string {
  return `${a}\u0001${b}`;
}

function inRowOrder(oneRow: string, otherRow: string): [string, string] {
  return compareText(oneRow, otherRow) <= 0 ? [oneRow, otherRow] : [otherRow, oneRow];
}

function namedRowOf(namedRowId: string): NamedRow {
  const separatorAt = namedRowId.indexOf('\u0000');
  return { type: namedRowId.slice(0, separatorAt), key: namedRowId.slice(separatorAt + 1) };
}
